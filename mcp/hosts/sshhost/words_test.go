package sshhost

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/hosts"
)

func TestAddress(t *testing.T) {
	n := &corev1.Node{}
	n.Name = "w0"
	if _, err := address(n); !hosts.IsPermanent(err) {
		t.Errorf("none: %v", err)
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "w0.example"}}
	if a, err := address(n); err != nil || a != "w0.example:22" {
		t.Error(a, err)
	}
	n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "2001:db8::1"})
	if a, err := address(n); err != nil || a != "[2001:db8::1]:22" {
		t.Error(a, err)
	}
}

// FuzzQuote: a shell takes the words out of the line as they were.
func FuzzQuote(f *testing.F) {
	f.Add("it's", "$(id)")
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := quote("printf", `%s\n.`, a, b)
		if strings.ContainsRune(a+b, 0) {
			if err == nil {
				t.Error("a NUL")
			}
			return
		}
		out, err2 := exec.Command("sh", "-c", line).Output()
		if diff := cmp.Diff(fmt.Sprintf("%s\n.%s\n.", a, b), string(out)); err != nil || err2 != nil || diff != "" {
			t.Errorf("%v, %v: %s\n%s", err, err2, line, diff)
		}
	})
}
