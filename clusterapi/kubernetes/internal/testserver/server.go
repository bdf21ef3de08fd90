package testserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver/programs"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Server is a kube-apiserver with its etcd. It may be stopped and started
// again, and keeps its address and its objects then.
type Server struct {
	config    *rest.Config
	programs  programs.Programs
	ca        *authority
	log       *os.File
	etcdPort  int
	peerPort  int
	port      int
	etcd, api *process
}

// Limits of time: of the first build on a busy machine, and of a start.
const (
	buildTimeout = 45 * time.Minute
	startTimeout = 3 * time.Minute
)

// Start builds, where needed, and starts a server. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	programs, err := programs.Build(ctx)
	checktest.OK(t, err)
	var s *Server
	for range 3 { // another process may take a port before ours does
		s, err = newServer(t, programs)
		if err == nil {
			return s
		}
		t.Logf("starting a server: %v", err)
	}
	t.Fatal("no server")
	return nil
}

func newServer(t testing.TB, programs programs.Programs) (*Server, error) {
	t.Helper()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	dir := t.TempDir()
	s := &Server{programs: programs, etcdPort: ports[0], peerPort: ports[1], port: ports[2]}
	s.ca, err = newAuthority(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"etcd", "apiserver", "accounts"} {
		if err := s.ca.issue(name); err != nil {
			return nil, err
		}
	}
	token := rand.Text()
	if err := os.WriteFile(s.ca.path("tokens"), []byte(token+",test,test,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	s.log, err = os.Create(s.ca.path("log"))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		s.api.kill()
		s.etcd.kill()
		_ = s.log.Close()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", s.tail())
		}
	})
	s.config = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", s.port),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.ca.pem},
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := s.startEtcd(); err != nil {
		return nil, err
	}
	if err := s.StartAPIServer(ctx); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, s.tail())
	}
	return s, nil
}

// Config returns a configuration of a client that may do everything.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Kubeconfig writes a configuration file that stands for [Server.Config].
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: s.config.Host, CertificateAuthorityData: s.ca.pem}
	c.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: s.config.BearerToken}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	c.CurrentContext = "test"
	path := s.ca.path("kubeconfig")
	checktest.OK(t, clientcmd.WriteToFile(*c, path))
	return path
}

// Addresses returns where kube-apiserver and etcd listen.
func (s *Server) Addresses() []string {
	return []string{fmt.Sprintf("127.0.0.1:%d", s.port), fmt.Sprintf("127.0.0.1:%d", s.etcdPort)}
}

// StopAPIServer kills kube-apiserver as a power cut does. etcd continues.
func (s *Server) StopAPIServer() { s.api.kill() }

// StartAPIServer starts kube-apiserver and waits until it is ready.
func (s *Server) StartAPIServer(ctx context.Context) error {
	var err error
	s.api, err = start(s.log, s.programs.APIServer,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.port),
		"--tls-cert-file="+s.ca.path("apiserver.crt"), "--tls-private-key-file="+s.ca.path("apiserver.key"),
		"--token-auth-file="+s.ca.path("tokens"), "--authorization-mode=RBAC", "--cert-dir="+s.ca.dir,
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", s.etcdPort), "--etcd-cafile="+s.ca.path("ca.crt"),
		"--etcd-certfile="+s.ca.path("apiserver.crt"), "--etcd-keyfile="+s.ca.path("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+s.ca.path("accounts.crt"),
		"--service-account-signing-key-file="+s.ca.path("accounts.key"), "--service-cluster-ip-range=10.0.0.0/16",
		"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none", "--allow-privileged=true", "--profiling=false",
	)
	if err != nil {
		return err
	}
	return s.await(ctx)
}

func (s *Server) startEtcd() error {
	client, peer := fmt.Sprintf("https://127.0.0.1:%d", s.etcdPort), fmt.Sprintf("http://127.0.0.1:%d", s.peerPort)
	var err error
	s.etcd, err = start(s.log, s.programs.Etcd,
		"--name=test", "--data-dir="+s.ca.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=test="+peer,
		"--cert-file="+s.ca.path("etcd.crt"), "--key-file="+s.ca.path("etcd.key"),
		"--client-cert-auth", "--trusted-ca-file="+s.ca.path("ca.crt"),
	)
	return err
}

// await returns when the server reports that it is ready.
func (s *Server) await(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.Config())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	last := "no answer"
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err != nil {
			last = err.Error()
		} else {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			last = resp.Status
		}
		for _, p := range []*process{s.etcd, s.api} {
			if err := p.ended(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not become ready: %s", last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tail returns the last lines of the processes' output.
func (s *Server) tail() string {
	data, err := os.ReadFile(s.ca.path("log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
