package sshhost_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/sshhost"
)

const password = "correct horse"

// answer is what a command does: what it prints, and how it ends.
type answer struct {
	stdout, stderr string
	status         uint32
	signal         string
	lost           bool // the connection is closed, and nothing answered
	hang           bool // nothing is answered until the test ends
}

// server is an SSH server on the loopback interface.
type server struct {
	key     ssh.Signer
	address string
	answer  func(argv []string) answer
	ended   chan struct{} // closed when the test ends

	mu    sync.Mutex
	lines []string // as they came
}

// serve starts a server until the test ends.
func serve(t testing.TB, answer func(argv []string) answer) *server {
	t.Helper()
	s := &server{key: newKey(t), answer: answer, ended: make(chan struct{})}
	listener := checktest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.address = listener.Addr().String()
	config := &ssh.ServerConfig{PasswordCallback: func(c ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) {
		if string(p) != password {
			return nil, errors.New("wrong password")
		}
		return nil, nil
	}}
	config.AddHostKey(s.key)
	var group sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			group.Go(func() { s.handle(conn, config) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		close(s.ended)
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		group.Wait()
	})
	return s
}

func newKey(t testing.TB) ssh.Signer {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	checktest.OK(t, err)
	key := checktest.Get(ssh.NewSignerFromKey(private))(t)
	return key
}

func (s *server) handle(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	c, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for newChannel := range channels {
		channel, requests, err := newChannel.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			if r.Type != "exec" {
				_ = r.Reply(false, nil)
				continue
			}
			_ = r.Reply(true, nil)
			var payload struct{ Line string }
			_ = ssh.Unmarshal(r.Payload, &payload)
			if s.run(channel, payload.Line, c.User()) {
				return
			}
			channel.Close()
		}
	}
}

// run runs a line, and reports whether the connection is to be closed.
func (s *server) run(channel ssh.Channel, line, user string) (lost bool) {
	s.mu.Lock()
	s.lines = append(s.lines, line)
	s.mu.Unlock()
	argv := strings.Fields(line)
	if strings.ContainsAny(line, `'"\$`) { // a real shell says what words the line has
		out, err := exec.Command("sh", "-c", "set -- "+line+`; printf '%s\0' "$@"`).Output()
		if err != nil {
			return true
		}
		argv = strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	}
	prefix := []string{"env", "LC_ALL=C"}
	if user != "root" {
		prefix = append([]string{"sudo", "-n", "--"}, prefix...)
	}
	if len(argv) < len(prefix) || strings.Join(argv[:len(prefix)], " ") != strings.Join(prefix, " ") {
		return true
	}
	a := s.answer(argv[len(prefix):])
	if a.lost {
		return true
	}
	if a.hang {
		<-s.ended
		return true
	}
	_, _ = channel.Write([]byte(a.stdout))
	_, _ = channel.Stderr().Write([]byte(a.stderr))
	if a.signal != "" {
		_, _ = channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal string
			Core   bool
			Text   string
			Lang   string
		}{Signal: a.signal}))
		return false
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{a.status}))
	return false
}

// hosts are hosts of which each is this server.
func (s *server) hosts(t testing.TB, change ...func(*sshhost.Options)) *sshhost.Hosts {
	t.Helper()
	o := sshhost.Options{
		Auth:     []ssh.AuthMethod{ssh.Password(password)},
		HostKeys: ssh.FixedHostKey(s.key.PublicKey()),
		Address:  func(*corev1.Node) (string, error) { return s.address, nil },
	}
	for _, f := range change {
		f(&o)
	}
	h := checktest.Get(sshhost.New(o))(t)
	return h
}
