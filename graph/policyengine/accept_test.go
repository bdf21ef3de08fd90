package policyengine_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/policyengine"
)

// TestAccept: the type of an answer, "" for 406, in both modes.
func TestAccept(t *testing.T) {
	modes := map[bool]*service{
		false: serve(t, policyengine.Options{}, sample(t)),
		true:  serve(t, policyengine.Options{Compat: true}, sample(t)),
	}
	for _, tt := range []struct {
		accept       []string
		want, compat string
	}{
		{nil, vendor, vendor},
		{[]string{plain}, plain, plain},
		{[]string{"application/*"}, plain, plain},
		{[]string{"*/*"}, plain, plain},
		{[]string{"*"}, plain, plain},
		{[]string{vendor}, vendor, vendor},
		{[]string{""}, "", ""},
		{[]string{","}, "", ""},
		{[]string{"text/html"}, "", ""},
		{[]string{"application/vnd.redhat.cincinnati.v2+json"}, "", ""},
		{[]string{"application/vnd.redhat.cincinnati.v2+json, */*;q=0.1"}, plain, ""},
		{[]string{"Application/JSON"}, plain, ""},
		{[]string{"application/json;q=0.5"}, plain, ""},
		{[]string{"application/json; charset=utf-8"}, plain, ""},
		{[]string{`application/json; a="x, y;\"q=0"`}, plain, ""},
		{[]string{"application/json;"}, plain, ""},
		{[]string{"text/html, application/json"}, plain, ""},
		{[]string{"text/html,application/xhtml+xml,*/*;q=0.8"}, plain, ""},
		{[]string{vendor + ", " + plain}, vendor, ""},
		{[]string{plain + ", " + vendor}, plain, ""},
		{[]string{plain + ";q=0.5, " + vendor}, vendor, ""},
		{[]string{plain + ", " + vendor + ";q=0.999"}, plain, ""},
		{[]string{"*/*, " + vendor}, plain, ""},
		{[]string{vendor + ", */*"}, vendor, ""},
		{[]string{vendor + ";q=0.5, */*;q=0.1"}, vendor, ""},
		{[]string{vendor + ";q=0, */*"}, plain, ""},
		{[]string{plain + ";q=0, */*"}, vendor, ""},
		{[]string{plain + ";q=0"}, "", ""},
		{[]string{"*/*;q=0"}, "", ""},
		{[]string{"*/*;q=0, " + vendor}, vendor, ""},
		{[]string{"application/*;q=0, */*"}, "", ""},
		{[]string{"text/html", plain}, plain, ""},
		{[]string{plain, "text/html"}, plain, plain},
		{[]string{vendor, plain + ";q=0, ;;"}, vendor, vendor},
		{[]string{" , application/json ,, "}, plain, ""},
		{[]string{"application/json;q=1.5"}, "", ""},
		{[]string{"application/json;q=1.001"}, "", ""},
		{[]string{"application/json;q=0.0001"}, "", ""},
		{[]string{"application/json;q=x"}, "", ""},
		{[]string{"application/json;q="}, "", ""},
		{[]string{"application/json;q"}, "", ""},
		{[]string{"application/json;Q=1.000"}, plain, ""},
		{[]string{"application/json, ;q=1"}, "", ""},
		{[]string{"application/json, text"}, "", ""},
		{[]string{"application/json, te xt/html"}, "", ""},
		{[]string{`application/json;a="`}, "", ""},
	} {
		var headers []string
		for _, a := range tt.accept {
			headers = append(headers, "Accept", a)
		}
		for compat, s := range modes {
			want := tt.want
			if compat {
				want = tt.compat
			}
			got := s.get(t, "/api/graph?channel=fast-1.1", headers...)
			if want == "" {
				if got.code != 406 || got.body != failed("invalid_content_type", "invalid Content-Type requested") || got.Get("Content-Type") != plain {
					t.Errorf("%q, compat %v: %d %s", tt.accept, compat, got.code, got.body)
				}
				continue
			}
			if got.code != 200 || got.Get("Content-Type") != want {
				t.Errorf("%q, compat %v: %d %s, want %s", tt.accept, compat, got.code, got.Get("Content-Type"), want)
			}
		}
	}
}
