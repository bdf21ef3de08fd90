package imageref

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestParse(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for s, want := range map[string]struct {
		r   Reference
		err string
	}{
		"a":                                    {Reference{Name: "a"}, ""},
		"a:b":                                  {Reference{Name: "a", Tag: "b"}, ""},
		"4.0.1":                                {Reference{Name: "4.0.1"}, ""},
		"h.io:5000/a/b-c__d:t@" + digest:       {Reference{"h.io:5000/a/b-c__d", "t", digest}, ""},
		"[::1]:5000/a@" + digest:               {Reference{"[::1]:5000/a", "", digest}, ""},
		"Host/a":                               {Reference{Name: "Host/a"}, ""},
		"":                                     {Reference{}, ErrEmpty.Error()},
		"A":                                    {Reference{}, ErrUppercase.Error()},
		"h.io/A:b":                             {Reference{}, ErrUppercase.Error()},
		"a//b":                                 {Reference{}, ErrInvalid.Error()},
		"a:":                                   {Reference{}, ErrInvalid.Error()},
		"a@sha256:12":                          {Reference{}, ErrInvalid.Error()},
		"a b":                                  {Reference{}, ErrInvalid.Error()},
		"a\n":                                  {Reference{}, ErrInvalid.Error()},
		"a:" + strings.Repeat("t", 129):        {Reference{}, ErrInvalid.Error()},
		strings.Repeat("a", 256):               {Reference{}, ErrTooLong.Error()},
		"a@md5:" + digest[7:]:                  {Reference{Name: "a", Digest: "md5:" + digest[7:]}, "unsupported digest algorithm"},
		"a@sha512:" + digest[7:]:               {Reference{Name: "a", Digest: "sha512:" + digest[7:]}, "invalid checksum digest length"},
		"a@sha256:" + strings.Repeat("0A", 32): {Reference{Name: "a", Digest: "sha256:" + strings.Repeat("0A", 32)}, "invalid checksum digest format"},
	} {
		r, err := Parse(s)
		checktest.FailIf(t, (err == nil) != (want.err == "") || err != nil && err.Error() != want.err || r != want.r,
			"%.80q: %+v, %v", s, r, err)
	}
}
