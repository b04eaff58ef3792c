package node

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"scanode/etf"
)

// ErrWrongCookie is returned by Connect when the two nodes do not share a
// cookie.
var ErrWrongCookie = errors.New("node: the cookies differ")

// ErrNotAllowed is returned by Connect when the peer refuses this node.
var ErrNotAllowed = errors.New("node: not allowed")

// errNok says that the peer goes on with the connection it has under way to us.
var errNok = errors.New("node: the peer connects to us at this moment")

// errNameMe says that the caller has no name and wants to be given one.
var errNameMe = fmt.Errorf("%w: the caller asks for a name (-name undefined), and none are given here", ErrNotAllowed)

// maxHandshakeBytes bounds one handshake message. The longest of ours holds a
// name of 255 bytes.
const maxHandshakeBytes = 2048

// maxNameBytes is the longest atom.
const maxNameBytes = 255

// status is what the called side says to the caller's name.
type status string

const (
	statusOK             status = "ok"
	statusOKSimultaneous status = "ok_simultaneous"
	statusNok            status = "nok"
	statusAlive          status = "alive"
	statusNotAllowed     status = "not_allowed"
)

// peer is what a handshake tells about the other side.
type peer struct {
	name     etf.Atom
	flags    flags // what the peer announces, written out
	creation uint32
	ours     flags // what it was told
}

// agreed returns the capabilities both sides have.
func (p peer) agreed() flags { return p.flags & p.ours }

// handshake is one side of a handshake of version 6. Messages are
// `Length:16, Tag, ...`, over TLS `Length:32, Tag, ...`:
//
//	caller                                    called
//	'N' Flags:64 Creation:32 NLen:16 Name ──►
//	('n' Version:16 Flags:32 Name)            ◄── 's' Status
//	                                          ◄── 'N' Flags:64 Challenge:32 Creation:32 NLen:16 Name
//	('c' FlagsHigh:32 Creation:32) ─────────►
//	'r' Challenge:32 Digest:16 bytes ───────►
//	                                          ◄── 'a' Digest:16 bytes
//
// The lines in parentheses are what OTP 23 says when it has not asked epmd.
type handshake struct {
	conn net.Conn
	// in is the only reader of conn, also after the handshake: the caller may
	// send its first frame right behind its last message.
	in       *bufio.Reader
	wide     bool     // lengths of four bytes: the connection is TLS
	name     etf.Atom // ours
	flags    flags    // ours
	creation uint32   // ours
	digest   digester
}

// answer is the called side. admit decides on the caller before it sees a
// challenge. ready runs when the caller has proved to know the cookie, before
// the last message tells it that the link is up.
func (h *handshake) answer(admit func(peer) status, ready func(peer) error) (peer, error) {
	msg, err := h.read()
	if err != nil {
		return peer{}, err
	}
	p, old, err := parseName(msg)
	if errors.Is(err, errNameMe) {
		h.write(append([]byte{'s'}, statusNotAllowed...))
	}
	if err != nil {
		return peer{}, err
	}
	p.ours = h.flags
	s := statusNotAllowed
	missing, stranger := p.flags.missing(), vouch(h.conn, p.name)
	if missing == "" && stranger == nil {
		s = admit(p)
	}
	if err := h.write(append([]byte{'s'}, s...)); err != nil {
		return p, err
	}
	switch {
	case missing != "":
		return p, fmt.Errorf("%w: it lacks %s", ErrNotAllowed, missing)
	case stranger != nil:
		return p, stranger
	case s == statusNotAllowed:
		return p, ErrNotAllowed
	case s == statusNok:
		return p, errNok
	}
	challenge, err := newChallenge()
	if err != nil {
		return p, err
	}
	if err := h.write(appendChallenge(nil, h.name, h.flags, h.creation, challenge)); err != nil {
		return p, err
	}
	if old {
		if msg, err = h.read(); err != nil {
			return p, err
		}
		if err := parseComplement(msg, &p); err != nil {
			return p, err
		}
	}
	if msg, err = h.read(); err != nil {
		return p, err
	}
	theirs, got, err := parseReply(msg)
	if err != nil {
		return p, err
	}
	if !got.equal(h.digest(challenge)) {
		return p, ErrWrongCookie
	}
	if err := ready(p); err != nil {
		return p, err
	}
	d := h.digest(theirs)
	return p, h.write(append([]byte{'a'}, d[:]...))
}

// call is the calling side. to is the name the peer must have.
func (h *handshake) call(to etf.Atom, ready func(peer) error) (peer, error) {
	if err := h.write(appendName(nil, h.name, h.flags, h.creation)); err != nil {
		return peer{}, err
	}
	msg, err := h.read()
	if err != nil {
		return peer{}, err
	}
	s, err := parseStatus(msg)
	if err != nil {
		return peer{}, err
	}
	switch s {
	case statusOK, statusOKSimultaneous:
	case statusAlive:
		// It still holds a link we no longer have: yes, replace it.
		if err := h.write([]byte("strue")); err != nil {
			return peer{}, err
		}
	case statusNok:
		return peer{}, errNok
	case statusNotAllowed:
		return peer{}, ErrNotAllowed
	default:
		return peer{}, fmt.Errorf("handshake: status %.40q", string(s))
	}
	if msg, err = h.read(); err != nil {
		return peer{}, err
	}
	p, theirs, err := parseChallenge(msg)
	if err != nil {
		return peer{}, err
	}
	p.ours = h.flags
	if p.name != to {
		return p, fmt.Errorf("handshake: called %q, %q answered", to, p.name)
	}
	if missing := p.flags.missing(); missing != "" {
		return p, fmt.Errorf("handshake: the peer lacks %s", missing)
	}
	challenge, err := newChallenge()
	if err != nil {
		return p, err
	}
	if err := h.write(appendReply(nil, challenge, h.digest(theirs))); err != nil {
		return p, err
	}
	if msg, err = h.read(); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			// All the BEAM does with a wrong digest is hang up.
			return p, fmt.Errorf("%w: the peer hung up on our answer to its challenge", ErrWrongCookie)
		}
		return p, err
	}
	got, err := parseAck(msg)
	if err != nil {
		return p, err
	}
	if !got.equal(h.digest(challenge)) {
		return p, ErrWrongCookie
	}
	return p, ready(p)
}

func newChallenge() (uint32, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(b[:]), nil
}

// read reads one message into fresh memory.
func (h *handshake) read() ([]byte, error) { return readHandshake(h.in, h.wide) }

func readHandshake(r io.Reader, wide bool) ([]byte, error) {
	var b [4]byte
	size := b[2:]
	if wide {
		size = b[:]
	}
	if _, err := io.ReadFull(r, size); err != nil {
		return nil, fmt.Errorf("handshake: the connection ended: %w", err)
	}
	n := int(binary.BigEndian.Uint32(b[:]))
	switch {
	case !wide && isTLSRecord(n):
		return nil, ErrPeerTLS
	case n == 0 || n > maxHandshakeBytes:
		return nil, fmt.Errorf("handshake: a message of %d bytes", n)
	}
	msg := make([]byte, n)
	if _, err := io.ReadFull(r, msg); err != nil {
		return nil, fmt.Errorf("handshake: the connection ended: %w", err)
	}
	return msg, nil
}

func (h *handshake) write(msg []byte) error {
	b := make([]byte, 0, 4+len(msg))
	if h.wide {
		b = binary.BigEndian.AppendUint32(b, uint32(len(msg)))
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(msg)))
	}
	if _, err := h.conn.Write(append(b, msg...)); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	return nil
}

func appendName(dst []byte, name etf.Atom, ours flags, creation uint32) []byte {
	dst = append(dst, 'N')
	dst = binary.BigEndian.AppendUint64(dst, uint64(ours))
	dst = binary.BigEndian.AppendUint32(dst, creation)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(name)))
	return append(dst, name...)
}

// parseName parses the caller's first message. old says that the message was of
// the old form, so that the upper flags and the creation follow in a complement.
func parseName(b []byte) (p peer, old bool, err error) {
	switch {
	case len(b) >= 15 && b[0] == 'N':
		p.flags = flags(binary.BigEndian.Uint64(b[1:])).expand()
		p.creation = binary.BigEndian.Uint32(b[9:])
		if p.flags&flagNameMe != 0 {
			return p, false, errNameMe
		}
		p.name, err = parseNodeName(b[13:])
		return p, false, err
	case len(b) >= 7 && b[0] == 'n':
		p.flags = flags(binary.BigEndian.Uint32(b[3:])).expand()
		p.name, err = checkNodeName(b[7:])
		return p, true, err
	}
	return peer{}, false, fmt.Errorf("handshake: not a name message (%d bytes, tag %d)", len(b), b[0])
}

// parseNodeName parses `NLen:16, Name`. Bytes behind the name are for later
// versions.
func parseNodeName(b []byte) (etf.Atom, error) {
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; n > len(b) {
		return "", fmt.Errorf("handshake: a name of %d bytes in %d", n, len(b))
	}
	return checkNodeName(b[:n])
}

// checkNodeName checks that name is a full node name that is safe to print.
func checkNodeName(name []byte) (etf.Atom, error) {
	alive, host, ok := strings.Cut(string(name), "@")
	bad := !ok || alive == "" || host == "" || len(name) > maxNameBytes || !utf8.Valid(name) ||
		strings.Contains(host, "@") ||
		strings.ContainsFunc(string(name), func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' })
	if bad {
		return "", fmt.Errorf("%.80q is not a node name", name)
	}
	return etf.Atom(name), nil
}

func parseStatus(b []byte) (status, error) {
	if b[0] != 's' {
		return "", fmt.Errorf("handshake: not a status (tag %d)", b[0])
	}
	return status(b[1:]), nil
}

func appendChallenge(dst []byte, name etf.Atom, ours flags, creation, challenge uint32) []byte {
	dst = append(dst, 'N')
	dst = binary.BigEndian.AppendUint64(dst, uint64(ours))
	dst = binary.BigEndian.AppendUint32(dst, challenge)
	dst = binary.BigEndian.AppendUint32(dst, creation)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(name)))
	return append(dst, name...)
}

func parseChallenge(b []byte) (p peer, challenge uint32, err error) {
	if b[0] == 'n' {
		return p, 0, errors.New("handshake: the peer is older than OTP 23")
	}
	if len(b) < 19 || b[0] != 'N' {
		return p, 0, fmt.Errorf("handshake: not a challenge (%d bytes, tag %d)", len(b), b[0])
	}
	p.flags = flags(binary.BigEndian.Uint64(b[1:])).expand()
	challenge = binary.BigEndian.Uint32(b[9:])
	p.creation = binary.BigEndian.Uint32(b[13:])
	p.name, err = parseNodeName(b[17:])
	return p, challenge, err
}

func parseComplement(b []byte, p *peer) error {
	if len(b) < 9 || b[0] != 'c' {
		return fmt.Errorf("handshake: not a complement (%d bytes, tag %d)", len(b), b[0])
	}
	p.flags |= flags(binary.BigEndian.Uint32(b[1:])) << 32
	p.creation = binary.BigEndian.Uint32(b[5:])
	return nil
}

func appendReply(dst []byte, challenge uint32, d digest) []byte {
	dst = append(dst, 'r')
	dst = binary.BigEndian.AppendUint32(dst, challenge)
	return append(dst, d[:]...)
}

func parseReply(b []byte) (challenge uint32, d digest, err error) {
	if len(b) != 5+len(d) || b[0] != 'r' {
		return 0, d, fmt.Errorf("handshake: not an answer to the challenge (%d bytes, tag %d)", len(b), b[0])
	}
	copy(d[:], b[5:])
	return binary.BigEndian.Uint32(b[1:]), d, nil
}

func parseAck(b []byte) (d digest, err error) {
	if len(b) != 1+len(d) || b[0] != 'a' {
		return d, fmt.Errorf("handshake: not an acknowledgement (%d bytes, tag %d)", len(b), b[0])
	}
	copy(d[:], b[1:])
	return d, nil
}
