/*
 * A C node that uses a store of a scanode node: opens it, writes 1,000 rows, reads one, scans all, closes it. It prints a line for each and ends with
 * status 0, or says on standard error what was not as it should be.
 *
 *	peer ALIVE HOST COOKIE-FILE NODE
 *
 * The protocol is docs/protocol.md; erl_interface knows how terms are written and how nodes meet.
 */
#include <ei.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 1000

static ei_cnode node;
static int fd;

static void fail(const char *what)
{
	fprintf(stderr, "%s (erl_errno %d)\n", what, erl_errno);
	exit(1);
}

static void check(int ok, const char *what)
{
	if (!ok)
		fail(what);
}

/* Waits for a message and leaves index behind its version byte. */
static void receive(ei_x_buff *in, int *index)
{
	erlang_msg msg;
	int got, version;

	do {
		in->index = 0;
		got = ei_xreceive_msg(fd, &msg, in);
	} while (got == ERL_TICK);
	check(got == ERL_MSG, "the link ended");
	check(msg.msgtype == ERL_SEND, "not a plain message");
	*index = 0;
	check(ei_decode_version(in->buff, index, &version) == 0, "no version byte");
}

/* Begins {'$gen_call', {Pid, Ref}, Request}. */
static void begin_call(ei_x_buff *out, erlang_pid *self, erlang_ref *ref)
{
	check(ei_make_ref(&node, ref) == 0, "no reference");
	ei_x_new_with_version(out);
	ei_x_encode_tuple_header(out, 3);
	ei_x_encode_atom(out, "$gen_call");
	ei_x_encode_tuple_header(out, 2);
	ei_x_encode_pid(out, self);
	ei_x_encode_ref(out, ref);
}

static void send_out(ei_x_buff *out)
{
	check(ei_reg_send(&node, fd, "scanode", out->buff, out->index) == 0, "cannot send");
	ei_x_free(out);
}

/* Sends a call and waits for {Ref, Reply}; index is then at Reply. */
static void call(ei_x_buff *out, erlang_ref *ref, ei_x_buff *in, int *index)
{
	erlang_ref tag;
	int arity;

	send_out(out);
	receive(in, index);
	check(ei_decode_tuple_header(in->buff, index, &arity) == 0 && arity == 2, "a reply is a pair");
	check(ei_decode_ref(in->buff, index, &tag) == 0 && ei_cmp_refs(&tag, ref) == 0, "the reply to another call");
}

static void expect_atom(ei_x_buff *in, int *index, const char *want)
{
	char atom[MAXATOMLEN_UTF8];

	if (ei_decode_atom(in->buff, index, atom) != 0 || strcmp(atom, want) != 0) {
		fprintf(stderr, "not %s but ", want);
		ei_print_term(stderr, in->buff, index);
		fail("");
	}
}

static uint64_t open_store(erlang_pid *self)
{
	ei_x_buff out, in;
	erlang_ref ref;
	unsigned long long id;
	int index, arity;

	ei_x_new(&in);
	begin_call(&out, self, &ref);
	ei_x_encode_tuple_header(&out, 3);
	ei_x_encode_atom(&out, "open");
	ei_x_encode_binary(&out, "from_c", 6);
	ei_x_encode_map_header(&out, 0);
	call(&out, &ref, &in, &index);
	check(ei_decode_tuple_header(in.buff, &index, &arity) == 0 && arity == 2, "open is answered by a pair");
	expect_atom(&in, &index, "ok");
	check(ei_decode_ulonglong(in.buff, &index, &id) == 0, "no store id");
	ei_x_free(&in);
	return id;
}

static void key_of(int row, char key[16])
{
	snprintf(key, 16, "key%05d", row);
}

static void write_rows(erlang_pid *self, uint64_t id)
{
	ei_x_buff out, in;
	erlang_ref ref;
	char key[16];
	int index, row;

	ei_x_new(&in);
	begin_call(&out, self, &ref);
	ei_x_encode_tuple_header(&out, 4);
	ei_x_encode_atom(&out, "write");
	ei_x_encode_ulonglong(&out, id);
	ei_x_encode_list_header(&out, ROWS);
	for (row = 0; row < ROWS; row++) {
		key_of(row, key);
		ei_x_encode_tuple_header(&out, 3);
		ei_x_encode_atom(&out, "put");
		ei_x_encode_binary(&out, key, 8);
		ei_x_encode_binary(&out, key + 3, 5);
	}
	ei_x_encode_empty_list(&out);
	ei_x_encode_map_header(&out, 1);
	ei_x_encode_atom(&out, "sync");
	ei_x_encode_boolean(&out, 1);
	call(&out, &ref, &in, &index);
	expect_atom(&in, &index, "ok");
	ei_x_free(&in);
}

static void get_row(erlang_pid *self, uint64_t id, int row)
{
	ei_x_buff out, in;
	erlang_ref ref;
	char key[16], value[16];
	int index, arity, type, size;
	long len;

	ei_x_new(&in);
	key_of(row, key);
	begin_call(&out, self, &ref);
	ei_x_encode_tuple_header(&out, 3);
	ei_x_encode_atom(&out, "get");
	ei_x_encode_ulonglong(&out, id);
	ei_x_encode_binary(&out, key, 8);
	call(&out, &ref, &in, &index);
	check(ei_decode_tuple_header(in.buff, &index, &arity) == 0 && arity == 2, "get is answered by a pair");
	expect_atom(&in, &index, "ok");
	check(ei_get_type(in.buff, &index, &type, &size) == 0 && type == ERL_BINARY_EXT && size == 5, "not the value's size");
	check(ei_decode_binary(in.buff, &index, value, &len) == 0 && memcmp(value, key + 3, 5) == 0, "another value");
	ei_x_free(&in);
}

/* Looks at the rows of one batch, a list of {Key, Value}; returns how many rows there are. */
static int read_batch(const char *bin, int row)
{
	int index = 0, version, left, arity, type, size, i;
	char want[16], key[16];
	long len;

	check(ei_decode_version(bin, &index, &version) == 0, "a batch is one term");
	check(ei_decode_list_header(bin, &index, &left) == 0 && left > 0, "a batch is a list");
	for (i = 0; i < left; i++) {
		check(ei_decode_tuple_header(bin, &index, &arity) == 0 && arity == 2, "a row is a pair");
		check(ei_get_type(bin, &index, &type, &size) == 0 && type == ERL_BINARY_EXT && size == 8, "not a key");
		check(ei_decode_binary(bin, &index, key, &len) == 0, "not a key");
		key_of(row + i, want);
		check(memcmp(key, want, 8) == 0, "rows out of order");
		check(ei_skip_term(bin, &index) == 0, "no value");
	}
	return left;
}

static void acknowledge(const erlang_ref *ref, long bytes)
{
	ei_x_buff out;

	ei_x_new_with_version(&out);
	ei_x_encode_tuple_header(&out, 3);
	ei_x_encode_atom(&out, "scan_ack");
	ei_x_encode_ref(&out, ref);
	ei_x_encode_long(&out, bytes);
	send_out(&out);
}

static int scan(erlang_pid *self, uint64_t id, int *batches)
{
	ei_x_buff out, in;
	erlang_ref ref, got;
	char atom[MAXATOMLEN_UTF8];
	int index, arity, type, size, rows = 0;

	check(ei_make_ref(&node, &ref) == 0, "no reference");
	ei_x_new(&in);
	ei_x_new_with_version(&out);
	ei_x_encode_tuple_header(&out, 4);
	ei_x_encode_atom(&out, "scan");
	ei_x_encode_tuple_header(&out, 2);
	ei_x_encode_pid(&out, self);
	ei_x_encode_ref(&out, &ref);
	ei_x_encode_ulonglong(&out, id);
	ei_x_encode_map_header(&out, 2);
	ei_x_encode_atom(&out, "max_batch_bytes");
	ei_x_encode_long(&out, 4096);
	ei_x_encode_atom(&out, "max_unacked_bytes");
	ei_x_encode_long(&out, 8192);
	send_out(&out);
	for (*batches = 0;; ++*batches) {
		receive(&in, &index);
		check(ei_decode_tuple_header(in.buff, &index, &arity) == 0 && arity == 3, "a message of a scan has three elements");
		check(ei_decode_atom(in.buff, &index, atom) == 0, "it begins with an atom");
		check(ei_decode_ref(in.buff, &index, &got) == 0 && ei_cmp_refs(&got, &ref) == 0, "another scan's message");
		if (strcmp(atom, "scan_end") == 0)
			break;
		check(strcmp(atom, "scan_batch") == 0, "not a batch");
		check(ei_get_type(in.buff, &index, &type, &size) == 0 && type == ERL_BINARY_EXT, "a batch is a binary");
		/* The binary's bytes begin behind its tag and its size. */
		rows += read_batch(in.buff + index + 5, rows);
		acknowledge(&ref, size);
	}
	ei_x_free(&in);
	return rows;
}

static void close_store(erlang_pid *self, uint64_t id)
{
	ei_x_buff out, in;
	erlang_ref ref;
	int index;

	ei_x_new(&in);
	begin_call(&out, self, &ref);
	ei_x_encode_tuple_header(&out, 2);
	ei_x_encode_atom(&out, "close");
	ei_x_encode_ulonglong(&out, id);
	call(&out, &ref, &in, &index);
	expect_atom(&in, &index, "ok");
	ei_x_free(&in);
}

static void connect_to(const char *alive, const char *host, const char *cookie_file, char *peer)
{
	char cookie[EI_MAX_COOKIE_SIZE + 1], name[MAXNODELEN + 1];
	struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
	FILE *file = fopen(cookie_file, "r");

	check(file != NULL && fgets(cookie, sizeof cookie, file) != NULL, "no cookie");
	fclose(file);
	cookie[strcspn(cookie, "\n")] = '\0';
	snprintf(name, sizeof name, "%s@%s", alive, host);
	check(ei_connect_xinit(&node, host, alive, name, &loopback, cookie, 1) == 0, "cannot be a node");
	fd = ei_connect(&node, peer);
	check(fd >= 0, "cannot connect");
}

int main(int argc, char **argv)
{
	erlang_pid self;
	uint64_t id;
	int rows, batches;

	if (argc != 5) {
		fprintf(stderr, "usage: peer ALIVE HOST COOKIE-FILE NODE\n");
		return 2;
	}
	ei_init();
	connect_to(argv[1], argv[2], argv[3], argv[4]);
	check(ei_make_pid(&node, &self) == 0, "no pid");
	id = open_store(&self);
	printf("opened\n");
	write_rows(&self, id);
	printf("wrote %d rows\n", ROWS);
	get_row(&self, id, 500);
	printf("got one row\n");
	rows = scan(&self, id, &batches);
	printf("scanned %d rows in %s\n", rows, batches > 1 ? "batches" : "one batch");
	close_store(&self, id);
	printf("closed\n");
	return 0;
}
