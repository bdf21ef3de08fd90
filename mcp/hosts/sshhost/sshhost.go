package sshhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
)

// Options are the options of [New].
type Options struct {
	// User logs in; empty means "core", the user of RHCOS. Anybody but root runs
	// commands by sudo, which must not ask for a password.
	User string
	// Auth are the ways to log in, tried in order; required.
	Auth []ssh.AuthMethod
	// HostKeys decides whether a host is the one it should be; required. Package
	// golang.org/x/crypto/ssh/knownhosts makes one from files. There is no default:
	// a host that nobody vouches for gets no command.
	HostKeys ssh.HostKeyCallback
	// Address returns the host and port of a node; nil means its InternalIP, or
	// else its Hostname, and port 22.
	Address func(n *corev1.Node) (string, error)
	// Dial connects; nil means by TCP. Bastions go here.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout bounds a command with the connection that is made for it; zero means
	// two minutes.
	Timeout time.Duration
	// MaxOutput is the most bytes that a command may write to its standard output;
	// zero means 1 MiB. More is a [*LimitError].
	MaxOutput int
}

// defaultMaxOutput is 1 MiB, in bytes.
const defaultMaxOutput = 1 << 20

// maxStderr is the most bytes that are kept of the standard error.
const maxStderr = 64 << 10

// LimitError reports that a command wrote more than [Options].MaxOutput allows.
type LimitError = limit.LimitError

// Hosts runs commands on the hosts of nodes by SSH, each on a connection of its
// own. It is safe for concurrent use.
type Hosts struct{ o Options }

// New returns hosts, and an error for options that cannot work.
func New(o Options) (*Hosts, error) {
	switch {
	case len(o.Auth) == 0:
		return nil, errors.New("sshhost.Options: Auth is required")
	case o.HostKeys == nil:
		return nil, errors.New("sshhost.Options: HostKeys is required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.User == "" {
		o.User = "core"
	}
	if o.Address == nil {
		o.Address = address
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = defaultMaxOutput
	}
	return &Hosts{o}, nil
}

// address returns the InternalIP of a node, or else its Hostname, with port 22.
// It fails for a node that has neither.
func address(n *corev1.Node) (string, error) {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeHostName} {
		for _, a := range n.Status.Addresses {
			if a.Type == kind && a.Address != "" {
				return net.JoinHostPort(a.Address, strconv.Itoa(22)), nil
			}
		}
	}
	return "", hosts.Permanent(fmt.Errorf("node %s has no address", n.Name))
}

// Run implements [hosts.Runner]. A host whose key is not accepted, and a login that
// is refused, are permanent errors; no error contains a credential.
func (h *Hosts) Run(ctx context.Context, n *corev1.Node, argv ...string) (string, error) {
	line, err := h.line(argv)
	if err != nil {
		return "", err
	}
	address, err := h.o.Address(n)
	if err != nil {
		return "", err
	}
	out, err := h.connect(ctx, address, line)
	if exit, ok := errors.AsType[*hosts.ExitError](err); ok {
		exit.Command = strings.Join(argv, " ")
		return "", exit
	}
	if err != nil {
		return "", fmt.Errorf("node %s: %w", n.Name, err)
	}
	return out, nil
}

// connect connects to a host and runs a line there.
func (h *Hosts) connect(ctx context.Context, address, line string) (string, error) {
	limited, cancel := reconcile.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	late := func(err error) error {
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("no answer within %s: %w", h.o.Timeout, context.DeadlineExceeded)
		}
		return err
	}
	conn, err := h.o.Dial(limited, "tcp", address)
	if err != nil {
		return "", late(err)
	}
	defer conn.Close() // which ends what is still under way
	out, err := reconcile.Await(limited, func() (string, error) { return h.run(conn, address, line) })
	return out, late(err)
}

// line is a command for the login shell of the host.
func (h *Hosts) line(argv []string) (string, error) {
	words := []string{"env", "LC_ALL=C"} // outputs are read
	if h.o.User != "root" {
		words = append([]string{"sudo", "-n", "--"}, words...)
	}
	return quote(append(words, argv...)...)
}

// run runs a line on a connection.
func (h *Hosts) run(conn net.Conn, address, line string) (string, error) {
	var refused error
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: h.o.User, Auth: h.o.Auth,
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			refused = h.o.HostKeys(host, remote, key)
			return refused
		},
	})
	switch {
	case refused != nil:
		return "", hosts.Permanent(fmt.Errorf("the key of host %s is not accepted: %w", address, refused))
	case err != nil && strings.Contains(err.Error(), "unable to authenticate"):
		return "", hosts.Permanent(fmt.Errorf("host %s refuses the login of %s", address, h.o.User))
	case err != nil:
		return "", err
	}
	client := ssh.NewClient(c, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	stdout, stderr := &bounded{limit: h.o.MaxOutput, fail: true}, &bounded{limit: maxStderr}
	session.Stdout, session.Stderr = stdout, stderr
	err = session.Run(line)
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok {
		failure := &hosts.ExitError{Status: exit.ExitStatus(), Stderr: stderr.kept.String()}
		if exit.Signal() != "" {
			failure.Status = -1
		}
		return "", failure
	}
	if stdout.over {
		return "", hosts.Permanent(&LimitError{Limit: "MaxOutput", Max: int64(h.o.MaxOutput), What: "bytes in the output of a command"})
	}
	return stdout.kept.String(), err
}

// bounded keeps what is written up to a limit, and then fails or drops it.
type bounded struct {
	kept       bytes.Buffer // not embedded: its ReadFrom knows no limit
	limit      int
	fail, over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.kept.Len()
	if len(p) <= room {
		return b.kept.Write(p)
	}
	b.over = true
	b.kept.Write(p[:max(room, 0)])
	if b.fail {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// quote makes a line for a POSIX shell of words that it passes on as they are. It
// fails for a word with a NUL, which no command can have.
func quote(words ...string) (string, error) {
	quoted := make([]string, len(words))
	for i, w := range words {
		if strings.ContainsRune(w, 0) {
			return "", hosts.Permanent(fmt.Errorf("a word of a command has a NUL: %q", w))
		}
		if w != "" && strings.Trim(w, plain) == "" {
			quoted[i] = w
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " "), nil
}

// plain are the characters that no shell reads as something else.
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:,+@%"
