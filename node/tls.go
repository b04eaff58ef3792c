package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"scanode/etf"
)

// Reasons there is no link although both sides speak the distribution protocol.
var (
	// ErrPeerTLS says that the peer speaks TLS distribution and this node does
	// not.
	ErrPeerTLS = errors.New("node: the peer speaks TLS distribution, this node plain")
	// ErrPeerPlain says that the peer speaks plain distribution and this node
	// TLS.
	ErrPeerPlain = errors.New("node: the peer speaks plain distribution, this node TLS")
	// ErrCertificate says that one side does not accept the other's
	// certificate, or that the two have no version or cipher in common.
	ErrCertificate = errors.New("node: TLS")
)

// Credentials are what a node shows to its peers over TLS, and what it checks
// theirs against.
type Credentials struct {
	// Certificate is this node's, with its key and the chain to one of the
	// peers' roots. It must be good for clients and for servers, and name the
	// host of the node's name.
	Certificate tls.Certificate
	// Roots are the authorities whose certificates peers may show.
	Roots *x509.CertPool
}

// Format writes "[credentials]" for every verb: they hold a private key.
func (Credentials) Format(f fmt.State, _ rune) { io.WriteString(f, "[credentials]") }

// check says whether c can be used.
func (c Credentials) check() error {
	if len(c.Certificate.Certificate) == 0 || c.Certificate.PrivateKey == nil || c.Roots == nil {
		return errors.New("node: TLS needs a certificate, its key, and the roots of the peers' certificates")
	}
	return nil
}

// secure makes a connection TLS where the node is configured so, within ctx. host
// is the peer's, to be named by its certificate; empty for a caller, whose name is
// not known yet.
func (n *Node) secure(ctx context.Context, conn net.Conn, host string) (net.Conn, error) {
	if n.cfg.TLS == nil {
		return conn, nil
	}
	// Anew for every link: a renewed certificate needs no restart.
	creds, err := n.cfg.TLS()
	if err == nil {
		err = creds.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: own credentials: %w", ErrCertificate, err)
	}
	cfg := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{creds.Certificate},
		// Nothing is resumed: every link shows its certificate.
		SessionTicketsDisabled: true,
		// Bulk is what links are for; a small message is a small record anyway.
		DynamicRecordSizingDisabled: true,
	}
	var secured *tls.Conn
	if host == "" {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, creds.Roots
		secured = tls.Server(conn, cfg)
	} else {
		cfg.RootCAs, cfg.ServerName = creds.Roots, host
		secured = tls.Client(conn, cfg)
	}
	if err := secured.HandshakeContext(ctx); err != nil {
		err = tlsError(ctx, err, host != "")
		if host == "" && errors.Is(err, ErrPeerPlain) {
			conn.Write(tlsAlert[:]) // says to a node like this one what it talked to
		}
		return nil, err
	}
	return secured, nil
}

// tlsAlert is a record with a fatal alert, unexpected_message.
var tlsAlert = [...]byte{21, 3, 3, 0, 2, 2, 10}

// tlsError says in the words of a cluster why a TLS handshake failed.
func tlsError(ctx context.Context, err error, calling bool) error {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		// A caller's name message: a length and its tag.
		if h := record.RecordHeader; calling || h[0] == 0 && (h[2] == 'N' || h[2] == 'n') {
			return ErrPeerPlain
		}
		return fmt.Errorf("handshake: not TLS: %w", err)
	case calling && (hungUp(err) || ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)):
		// To a plain node the start of TLS is a name message that lasts 5 KiB:
		// it waits for the rest or hangs up.
		return fmt.Errorf("%w, perhaps: it did not answer the TLS handshake (%w)", ErrPeerPlain, err)
	case hungUp(err), ctx.Err() != nil:
		return fmt.Errorf("handshake: the connection ended: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrCertificate, err)
}

// hungUp says whether err is the peer's end of a connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// isTLSRecord says whether the length of a plain handshake message is, in truth,
// the start of a TLS record: a handshake (22) or an alert (21) of version 3.
func isTLSRecord(length int) bool { return length == 0x1603 || length == 0x1503 }

// vouch checks that the certificate of a peer, where there is one, names the host
// of the peer's name. Otherwise whoever has any certificate of the cluster could
// take the name, and the link, of every node.
func vouch(conn net.Conn, name etf.Atom) error {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	_, host := splitName(name)
	// RequireAndVerifyClientCert, or being the client, guarantees one.
	if err := secured.ConnectionState().PeerCertificates[0].VerifyHostname(host); err != nil {
		return fmt.Errorf("%w: %w: %w", ErrNotAllowed, ErrCertificate, err)
	}
	return nil
}
