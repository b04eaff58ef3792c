/*
 * Answers a benchmark as echo does, by a C node made with erl_interface, which connects to the benchmark's node:
 *
 *	echo ALIVE HOST COOKIE-FILE NODE
 */
#include <ei.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ei_cnode node;
static int fd;

static void check(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s (erl_errno %d)\n", what, erl_errno);
		exit(1);
	}
}

static void encode_row(ei_x_buff *x, int i)
{
	char key[32], value[100] = {0};

	snprintf(key, sizeof key, "%016d", i);
	ei_x_encode_tuple_header(x, 2);
	ei_x_encode_binary(x, key, 16);
	ei_x_encode_binary(x, value, sizeof value);
}

static void encode_list(ei_x_buff *x)
{
	int i;

	ei_x_encode_list_header(x, 100);
	for (i = 0; i < 100; i++)
		encode_row(x, i);
	ei_x_encode_empty_list(x);
}

static void encode_small(ei_x_buff *x)
{
	ei_x_encode_tuple_header(x, 2);
	ei_x_encode_atom(x, "m");
	ei_x_encode_long(x, 1000);
}

static void answer_call(const char *buf, int index)
{
	ei_x_buff out;
	erlang_pid pid;
	int arity, tag, end;

	check(ei_decode_tuple_header(buf, &index, &arity) == 0 && ei_decode_pid(buf, &index, &pid) == 0, "not a caller");
	tag = end = index;
	check(ei_skip_term(buf, &end) == 0, "no tag");
	ei_x_new_with_version(&out);
	ei_x_encode_tuple_header(&out, 2);
	ei_x_append_buf(&out, buf + tag, end - tag);
	ei_x_encode_atom(&out, "pong");
	check(ei_send(fd, &pid, out.buff, out.index) == 0, "cannot send");
	ei_x_free(&out);
}

static void handle(const char *buf)
{
	static long count;
	static char binary[1000000];
	ei_x_buff out;
	erlang_pid pid;
	char name[MAXATOMLEN_UTF8];
	int index = 0, version, arity;
	long times = 1;

	check(ei_decode_version(buf, &index, &version) == 0 && ei_decode_tuple_header(buf, &index, &arity) == 0, "not a tuple");
	check(ei_decode_atom(buf, &index, name) == 0, "no name");
	if (strcmp(name, "m") == 0) {
		count++;
		return;
	}
	if (strcmp(name, "$gen_call") == 0) {
		answer_call(buf, index);
		return;
	}
	check(ei_decode_pid(buf, &index, &pid) == 0, "no pid");
	if (arity == 3)
		check(ei_decode_long(buf, &index, &times) == 0, "no number");
	ei_x_new_with_version(&out);
	if (strcmp(name, "ping") == 0) {
		ei_x_encode_atom(&out, "pong");
	} else if (strcmp(name, "count") == 0) {
		ei_x_encode_long(&out, count);
		count = 0;
	} else if (strcmp(name, "small") == 0) {
		encode_small(&out);
	} else if (strcmp(name, "lists") == 0) {
		encode_list(&out);
	} else if (strcmp(name, "binaries") == 0) {
		ei_x_encode_binary(&out, binary, sizeof binary);
	}
	while (times-- > 0)
		check(ei_send(fd, &pid, out.buff, out.index) == 0, "cannot send");
	ei_x_free(&out);
}

int main(int argc, char **argv)
{
	char cookie[EI_MAX_COOKIE_SIZE + 1], name[MAXNODELEN + 1];
	struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
	erlang_msg msg;
	ei_x_buff in;
	FILE *file;
	int got;

	check(argc == 5, "usage: echo ALIVE HOST COOKIE-FILE NODE");
	file = fopen(argv[3], "r");
	check(file != NULL && fgets(cookie, sizeof cookie, file) != NULL, "no cookie");
	fclose(file);
	cookie[strcspn(cookie, "\n")] = '\0';
	ei_init();
	snprintf(name, sizeof name, "%s@%s", argv[1], argv[2]);
	check(ei_connect_xinit(&node, argv[2], argv[1], name, &loopback, cookie, 1) == 0, "cannot be a node");
	fd = ei_connect(&node, argv[4]);
	check(fd >= 0, "cannot connect");
	ei_x_new(&in);
	for (;;) {
		in.index = 0;
		got = ei_xreceive_msg(fd, &msg, &in);
		if (got == ERL_ERROR)
			return 0;
		if (got == ERL_MSG && msg.msgtype == ERL_REG_SEND)
			handle(in.buff);
	}
}
