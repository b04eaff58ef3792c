// Package node joins an Erlang cluster as a hidden node: the distribution
// protocol of OTP 23 and later, spoken over TCP. It knows nothing of what the
// messages say; a [Handler] gets them as encoded terms.
//
// # Picture
//
//	epmd ◄── registration (kept open, renewed when epmd restarts)
//
//	listener ── accept ──► handshake ──► Link ── read goroutine ──► Handler
//	Connect ─── dial ────► handshake ──┘  │
//	                                      └──── signal goroutine: ticks, acks, monitors
//
// A link carries frames, each `Length:32` and then Length bytes:
//
//	(nothing)                            a tick
//	112, 131, Control                    a signal
//	112, 131, Control, 131, Message      a signal with a message
//
// Control is a tuple whose first element is its operation. Distribution headers
// (131 followed by 68, 69 or 70) are agreed to only where [Config.Fragments] says
// so, and the atom cache never. A peer that writes whole messages behind an empty
// header all the same is answered in kind: there are nodes that know nothing else.
//
// # Hidden
//
// The node announces itself to epmd as hidden and does not set the flag that
// publishes it, so global, pg and nodes() of the others never see it. It has no
// processes to speak of: only the names of [Config.Processes], each with a pid
// that lives as long as the node, and net_kernel, which answers the question a
// ping asks and refuses the rest. Remote spawns are not announced; the BEAM
// itself then answers rpc and erpc calls with notsup.
//
// # Goroutines
//
// A Node and a Link may be used from any number of goroutines. The methods of a
// Handler are called on the read goroutine of the link they are about: in order
// for one link, at the same time for several. While Message runs, nothing is
// read from that link (its sender feels a busy port) but its ticks go on.
//
// A sender never writes while another frame is half written: there is one turn
// per link. Signals (a tick, an acknowledgement, a monitor) never wait for it;
// they are collected and leave in front of the next frame. So an acknowledgement
// always precedes whatever is sent after the signal it answers.
//
// # Lifetime of slices
//
// The msg given to Handler.Message is freshly allocated and may be kept. The
// slices given to Send and SendAlias are only read, and only until the call
// returns.
//
// # Bounds
//
// A frame is at most [Config.MaxFrameBytes] long, and memory for it grows with
// the bytes that arrived, never with the length it claims. Handshakes have a
// deadline and at most 64 of them are under way at once. Messages come whole, one
// after another, unless [Config.Fragments] is set; then the unfinished ones of a
// link are at most 1024 and four frames' bytes together. That is off by default: it
// lets small messages between the pieces of large ones, but 64 MiB binaries then
// take three to four times as long, and a link may hold four times the memory. What a peer can make us
// remember (monitors, links) is capped per link. A panic while a link is served
// ends that link, never the node.
//
// # Security
//
// The cookie proves that both sides know it and nothing more: without TLS there is
// neither encryption nor integrity. With [Config.TLS] both sides show a certificate,
// which must name the host of the node's name; handshake messages then have lengths
// of four bytes, and all else is the same. A plain caller of a TLS node, and the
// reverse, is recognized by its first bytes and named in the log. The node listens on the loopback interface unless
// told otherwise. The cookie is in no log line, error or printed value.
//
// The source of truth is the chapter "Distribution Protocol" of the ERTS manual,
// and after it the BEAM, which the tests run against.
package node
