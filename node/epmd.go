package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The requests and answers of epmd, the port mapper. Requests are
// `Length:16, Tag, ...`, answers have no length.
const (
	epmdAlive2Req      = 120
	epmdAlive2Resp     = 121 // Result, Creation:16
	epmdAlive2XResp    = 118 // Result, Creation:32
	epmdPortPlease2Req = 122
	epmdPort2Resp      = 119

	epmdNodeHidden  = 72 // against 77 of a node that is published
	epmdProtocolTCP = 0

	// distVersion is the only version of the distribution protocol spoken
	// here, the one of OTP 23 and later.
	distVersion = 6
)

// ErrNameTaken is returned by Start when another node of this host has
// registered the name with epmd.
var ErrNameTaken = errors.New("node: the name is taken")

// ErrNoEPMD is returned by Start when no epmd answers.
var ErrNoEPMD = errors.New("node: no epmd")

// ErrUnknownNode is returned by Connect when epmd knows no node of that name.
var ErrUnknownNode = errors.New("node: no such node")

// appendAlive2Req appends the registration of a hidden node. alive is the part
// of the name before the @.
func appendAlive2Req(dst []byte, alive string, port uint16) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(13+len(alive)))
	dst = append(dst, epmdAlive2Req)
	dst = binary.BigEndian.AppendUint16(dst, port)
	dst = append(dst, epmdNodeHidden, epmdProtocolTCP)
	dst = binary.BigEndian.AppendUint16(dst, distVersion) // highest
	dst = binary.BigEndian.AppendUint16(dst, distVersion) // lowest
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(alive)))
	dst = append(dst, alive...)
	return binary.BigEndian.AppendUint16(dst, 0) // no extra bytes
}

// readAlive2Resp reads the answer to a registration and returns the creation
// epmd gave us.
func readAlive2Resp(r io.Reader) (creation uint32, err error) {
	var b [6]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return 0, fmt.Errorf("epmd closed the connection (%w)", err)
	}
	n := 4
	switch b[0] {
	case epmdAlive2XResp:
	case epmdAlive2Resp:
		n = 2
	default:
		return 0, fmt.Errorf("epmd answered with tag %d", b[0])
	}
	if b[1] != 0 {
		// Some releases close after a refusal without sending a creation.
		return 0, ErrNameTaken
	}
	if _, err := io.ReadFull(r, b[2:2+n]); err != nil {
		return 0, fmt.Errorf("epmd closed the connection (%w)", err)
	}
	if n == 2 {
		return uint32(binary.BigEndian.Uint16(b[2:])), nil
	}
	return binary.BigEndian.Uint32(b[2:]), nil
}

// appendPortPlease2Req appends the question for the port of a node.
func appendPortPlease2Req(dst []byte, alive string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(1+len(alive)))
	dst = append(dst, epmdPortPlease2Req)
	return append(dst, alive...)
}

// readPort2Resp reads the answer: the port of a node that speaks our protocol
// and version. The name and the extra bytes behind are left unread.
func readPort2Resp(r io.Reader) (port uint16, err error) {
	var b [10]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return 0, fmt.Errorf("epmd closed the connection (%w)", err)
	}
	if b[0] != epmdPort2Resp {
		return 0, fmt.Errorf("epmd answered with tag %d", b[0])
	}
	if b[1] != 0 {
		return 0, ErrUnknownNode
	}
	if _, err := io.ReadFull(r, b[2:]); err != nil {
		return 0, fmt.Errorf("epmd closed the connection (%w)", err)
	}
	port = binary.BigEndian.Uint16(b[2:])
	proto := b[5]
	highest := binary.BigEndian.Uint16(b[6:])
	lowest := binary.BigEndian.Uint16(b[8:])
	switch {
	case port == 0:
		return 0, errors.New("epmd answered with port 0")
	case proto != epmdProtocolTCP:
		return 0, fmt.Errorf("the node speaks transport protocol %d, not TCP", proto)
	case highest < distVersion || lowest > distVersion:
		return 0, fmt.Errorf("the node speaks distribution versions %d to %d, not %d", lowest, highest, distVersion)
	}
	return port, nil
}

// lookUpPort asks the epmd at addr for the port of the node named alive.
func lookUpPort(ctx context.Context, addr, alive string) (uint16, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, fmt.Errorf("%w at %s: %w", ErrNoEPMD, addr, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(appendPortPlease2Req(nil, alive)); err != nil {
		return 0, fmt.Errorf("asking epmd at %s: %w", addr, err)
	}
	port, err := readPort2Resp(conn)
	if err != nil {
		return 0, fmt.Errorf("asking epmd at %s for %s: %w", addr, alive, err)
	}
	return port, nil
}

// register announces the node to the epmd at addr. The registration lasts as
// long as the connection returned.
func register(ctx context.Context, addr, alive string, port uint16, timeout time.Duration) (net.Conn, uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, 0, fmt.Errorf("%w at %s: %w", ErrNoEPMD, addr, err)
	}
	creation, err := func() (uint32, error) {
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		if _, err := conn.Write(appendAlive2Req(nil, alive, port)); err != nil {
			return 0, err
		}
		return readAlive2Resp(conn)
	}()
	if err != nil {
		conn.Close()
		if errors.Is(err, ErrNameTaken) {
			return nil, 0, fmt.Errorf("%w: epmd at %s has a live node %s", ErrNameTaken, addr, alive)
		}
		return nil, 0, fmt.Errorf("registering with epmd at %s: %w", addr, err)
	}
	return conn, creation, nil
}
