package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestMain lets a test run this program again as another process, which ends
// when its standard input does: with the one that started it at the latest.
func TestMain(m *testing.M) {
	if os.Getenv(updaterEnv) == "" {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := updaterMain(context.Background(), os.Getenv(updaterEnv), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func newAPI(t testing.TB, s *testserver.Server, o kubernetes.Options) clusterapi.ClusterAPI {
	t.Helper()
	return checktest.Get(kubernetes.New(s.Config(), o))(t)
}

// logTo makes a logger of a test.
func logTo(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// object parses YAML, into which the arguments are put as by Sprintf.
func object(t testing.TB, text string, args ...any) *unstructured.Unstructured {
	t.Helper()
	data := checktest.Get(yaml.YAMLToJSON(fmt.Appendf(nil, text, args...)))(t)
	u := &unstructured.Unstructured{}
	checktest.OK(t, u.UnmarshalJSON(data))
	return u
}

func create(t testing.TB, api clusterapi.ClusterAPI, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	stored, err := api.Create(t.Context(), u, clusterapi.CreateOptions{})
	if err != nil {
		t.Fatalf("creating %s %s: %v", u.GetKind(), u.GetName(), err)
	}
	return stored
}

// poll calls f until it says done, at most for so long.
func poll(ctx context.Context, limit time.Duration, f func(context.Context) (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		done, err := f(ctx)
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
