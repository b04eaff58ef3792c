package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs the certificates of a test.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	})
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

// sign makes a key and a certificate for it; the authority's own when there is
// none yet.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// certificate signs one for the loopback, good for both ends unless changed.
func (a *authority) certificate(change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "node"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		// A BEAM that calls takes even an address for a host's name.
		DNSNames:    []string{"127.0.0.1"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	cert, key := a.sign(template)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// credentials are what a node is given: a certificate by a, trust in roots.
func credentials(cert tls.Certificate, roots ...*authority) func(*Config) {
	pool := x509.NewCertPool()
	for _, r := range roots {
		pool.AddCert(r.cert)
	}
	return func(c *Config) {
		c.TLS = func() (Credentials, error) { return Credentials{Certificate: cert, Roots: pool}, nil }
	}
}

// beamArgs are the arguments of a BEAM that speaks TLS with a certificate of its
// own and verifies its peers in both roles.
func (a *authority) beamArgs(cert tls.Certificate, version string) []string {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	serial := cert.Leaf.SerialNumber.String()
	certFile := a.write("cert"+serial+".pem", "CERTIFICATE", cert.Certificate[0])
	keyFile := a.write("key"+serial+".pem", "PRIVATE KEY", der)
	common := fmt.Sprintf("{certfile,%q},{keyfile,%q},{cacertfile,%q},{verify,verify_peer},{versions,['%s']}",
		certFile, keyFile, filepath.Join(a.dir, "ca.pem"), version)
	path := filepath.Join(a.dir, "opts"+serial)
	text := fmt.Sprintf("[{server,[%s,{fail_if_no_peer_cert,true}]},{client,[%[1]s]}].\n", common)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return []string{"-proto_dist", "inet_tls", "-ssl_dist_optfile", path}
}

// TestTLS links a BEAM that verifies its peers, in both directions and with both
// versions of TLS.
func TestTLS(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	for _, version := range []string{"tlsv1.2", "tlsv1.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ca := newAuthority(t)
			b := startBEAM(t, epmd, testCookie, ca.beamArgs(ca.certificate(nil), version)...)
			n, r, _ := startNode(t, epmd, credentials(ca.certificate(nil), ca))
			b.eval("N = '%s'.", n.Name())
			b.want("pong", "net_adm:ping(N).")
			r.next(t, "up")
			b.want("hello", "gen_server:call({scanode, N}, hello).")
			for _, size := range []int{100, 16 << 10, 100_000, 16 << 20} {
				b.want("true", "X%d = binary:copy(<<7>>, %[1]d), X%[1]d =:= gen_server:call({scanode, N}, X%[1]d, 30000).", size)
			}
			b.want("[]", "[{scanode, N} ! {echo, self(), {I, binary:copy(<<0>>, I rem 700)}} || I <- lists:seq(1, 2000)], "+
				"[I || I <- lists:seq(1, 2000), receive {P, {J, _}} -> I =/= J end].")
			b.want("true", "monitor_node(N, true), erlang:disconnect_node(N), receive {nodedown, N} -> true end.")
			if e := r.next(t, "down"); !errors.Is(e.err, ErrPeerClosed) {
				t.Errorf("down with %v", e.err)
			}
			l, err := n.Connect(testContext(t), b.name)
			if err != nil {
				t.Fatal(err)
			}
			r.next(t, "up")
			b.want("hello", "gen_server:call({scanode, N}, hello).")
			b.want("hello", "M1 = monitor(process, {scanode, N}), gen_server:call({scanode, N}, hello).")
			l.Close()
			b.want("noconnection", "receive {'DOWN', M1, process, {scanode, N}, R1} -> R1 end.")
			b.want("hello", "M2 = monitor(process, {scanode, N}), gen_server:call({scanode, N}, hello).")
			n.Close()
			b.want("shutdown", "receive {'DOWN', M2, process, {scanode, N}, R2} -> R2 end.")
		})
	}
}

// TestTLSRefused lets certificates be wrong in every way, on either side: no link,
// and the log or the error says why.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	good := ca.certificate(nil)
	past := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	elsewhere := func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere"} }
	for what, c := range map[string]struct {
		caller func(*Config)
		want   string
	}{
		"another authority": {credentials(other.certificate(nil), ca), "unknown authority"},
		"does not trust us": {credentials(good, other), "bad certificate"},
		"expired":           {credentials(ca.certificate(past), ca), "expired"},
		"another host":      {credentials(ca.certificate(elsewhere), ca), "node: not allowed"},
		"plain":             {nil, ErrPeerPlain.Error()},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			called, r, lines := startNode(t, "", credentials(good, ca))
			caller, _, _ := startNode(t, "", func(cfg *Config) {
				cfg.PeerPort = uint16(called.Addr().(*net.TCPAddr).Port)
				if c.caller != nil {
					c.caller(cfg)
				}
			})
			_, err := caller.Connect(testContext(t), called.Name())
			if err == nil {
				t.Fatal("there is a link")
			}
			if c.caller == nil && !errors.Is(err, ErrPeerTLS) {
				t.Errorf("the caller got %v", err)
			}
			lines.await("link refused")
			if got := lines.all(); !strings.Contains(got, c.want) || !strings.Contains(got, "WARN link refused") {
				t.Errorf("%s is not in the log:\n%s\nthe caller got %v", c.want, got, err)
			}
			if len(r.events) > 0 {
				t.Error("the handler heard of it")
			}
		})
	}
	t.Run("called shows another host", func(t *testing.T) {
		t.Parallel()
		called, _, _ := startNode(t, "", credentials(ca.certificate(elsewhere), ca))
		caller, _, lines := startNode(t, "", func(cfg *Config) {
			cfg.PeerPort = uint16(called.Addr().(*net.TCPAddr).Port)
			credentials(good, ca)(cfg)
		})
		if _, err := caller.Connect(testContext(t), called.Name()); !errors.Is(err, ErrCertificate) {
			t.Errorf("the caller got %v", err)
		}
		lines.await("link refused")
	})
	t.Run("plain called", func(t *testing.T) {
		t.Parallel()
		called, _, lines := startNode(t, "", nil)
		caller, _, _ := startNode(t, "", func(cfg *Config) {
			cfg.PeerPort = uint16(called.Addr().(*net.TCPAddr).Port)
			credentials(good, ca)(cfg)
		})
		if _, err := caller.Connect(testContext(t), called.Name()); !errors.Is(err, ErrPeerPlain) {
			t.Errorf("the caller got %v", err)
		}
		lines.await(ErrPeerTLS.Error())
	})
}

// TestTLSAgainstPlain lets a BEAM and a node disagree about TLS, called and
// calling.
func TestTLSAgainstPlain(t *testing.T) {
	t.Parallel()
	epmd := testEPMD(t)
	ca := newAuthority(t)
	t.Run("plain BEAM", func(t *testing.T) {
		t.Parallel()
		b := startBEAM(t, epmd, testCookie)
		n, _, lines := startNode(t, epmd, func(cfg *Config) {
			cfg.Handshake = time.Second // nothing comes from a plain BEAM that is told to wait
			credentials(ca.certificate(nil), ca)(cfg)
		})
		b.want("pang", "net_adm:ping('%s').", n.Name())
		lines.await(ErrPeerPlain.Error())
		if _, err := n.Connect(testContext(t), b.name); !errors.Is(err, ErrPeerPlain) {
			t.Errorf("Connect: %v", err)
		}
	})
	t.Run("TLS BEAM", func(t *testing.T) {
		t.Parallel()
		b := startBEAM(t, epmd, testCookie, ca.beamArgs(ca.certificate(nil), "tlsv1.3")...)
		n, _, lines := startNode(t, epmd, nil)
		b.want("pang", "net_adm:ping('%s').", n.Name())
		lines.await(ErrPeerTLS.Error())
		if _, err := n.Connect(testContext(t), b.name); !errors.Is(err, ErrPeerTLS) {
			t.Errorf("Connect: %v", err)
		}
	})
}

// TestCredentialsRenewed changes the certificate between two links, and takes it
// away before a third.
func TestCredentialsRenewed(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certs := make(chan tls.Certificate, 4)
	called, r, lines := startNode(t, "", func(cfg *Config) {
		certs <- ca.certificate(nil) // for the look at Start
		cfg.TLS = func() (Credentials, error) {
			pool := x509.NewCertPool()
			pool.AddCert(ca.cert)
			select {
			case c := <-certs:
				return Credentials{Certificate: c, Roots: pool}, nil
			default:
				return Credentials{}, errors.New("no file")
			}
		}
	})
	caller, _, _ := startNode(t, "", func(cfg *Config) {
		cfg.PeerPort = uint16(called.Addr().(*net.TCPAddr).Port)
		credentials(ca.certificate(nil), ca)(cfg)
	})
	for range 2 {
		next := ca.certificate(nil)
		certs <- next
		l, err := caller.Connect(testContext(t), called.Name())
		if err != nil {
			t.Fatal(err)
		}
		if got := l.conn.(*tls.Conn).ConnectionState().PeerCertificates[0]; !got.Equal(next.Leaf) {
			t.Error("the certificate shown is not the newest")
		}
		r.next(t, "up")
		l.Close()
		<-l.gone
		r.next(t, "down")
	}
	if _, err := caller.Connect(testContext(t), called.Name()); err == nil {
		t.Error("a link without a certificate")
	}
	lines.await("own credentials: no file")
	cfg := Config{Name: "a@127.0.0.1", Cookie: Cookie("x"), Handler: newRecorder(),
		TLS: func() (Credentials, error) { return Credentials{}, nil }}
	if n, err := Start(testContext(t), cfg); err == nil {
		n.Close()
		t.Error("started without a certificate")
	}
	if got := fmt.Sprintf("%v %+v %#v", Credentials{}, Credentials{}, Credentials{}); strings.Trim(got, "[credentials] ") != "" {
		t.Error(got)
	}
}
