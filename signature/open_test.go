package signature_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

func TestOpenStore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	checktest.OK(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct{ place, want, err string }{
		{"https://mirror.example/s", "containers/image signature store under https://mirror.example/s", ""},
		{"HTTP://mirror.example/s", "containers/image signature store under http://mirror.example/s", ""},
		{"file://" + dir, fmt.Sprint(dirStore(dir)), ""},
		{"ftp://user:secret@x", "", "store ftp://…: a store is a URL with scheme http, https or file, or a directory"},
		{file, "", "store " + file + " is not a directory"},
		{filepath.Join(dir, "none"), "", "store " + filepath.Join(dir, "none") + ": no such file or directory"},
	} {
		s, err := signature.OpenStore(tt.place, signature.HTTPOptions{})
		switch {
		case tt.err != "":
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: %v, want %s", tt.place, err, tt.err)
			}
		case err != nil || fmt.Sprint(s) != tt.want:
			t.Errorf("%s: %v %v, want %s", tt.place, s, err, tt.want)
		}
	}
}
