package clusterapi_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func TestLimits(t *testing.T) {
	sent := bytes.Repeat([]byte("x"), clusterapi.MaxErrorSize+1)
	long := errors.New(strings.Repeat("y", 1<<20))
	limittest.Walk(t, []limittest.Case{
		{Limit: "size of a sent error", Default: clusterapi.MaxErrorSize, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			err := clusterapi.DecodeError(sent)
			if !apierrors.IsInternalError(err) || len(err.Error()) > 2048 {
				t.Errorf("got %v, want a short internal error", err)
			}
			return 0
		}},
		{Limit: "text of an encoded error", Default: 16 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			data := clusterapi.EncodeError(long)
			if text := clusterapi.DecodeError(data).Error(); len(text) > 16<<10 || !strings.HasSuffix(text, "more bytes)") {
				t.Errorf("got %d bytes, ending in %q", len(text), text[max(0, len(text)-40):])
			}
			return 0
		}},
	})
}
