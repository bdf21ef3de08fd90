package catalog_test

import (
	"strings"
	"testing"
)

func TestImageReferences(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	tests := []struct {
		image string
		ok    bool
	}{
		{"busybox", true},
		{"library/busybox:1.36", true},
		{"quay.io/org/name", true},
		{"quay.io/org/name:v1.2.3_x", true},
		{"quay.io/org/name@" + digest, true},
		{"quay.io/org/name:tag@" + digest, true},
		{"localhost:5000/name", true},
		{"registry.example:5000/a/b/c:t", true},
		{"UPPER.example/name", true},
		{"[2001:db8::1]:5000/name", true},
		{"127.0.0.1/name", true},
		{"a__b/c-d--e.f", true},
		{"", true}, // not set; a rule of its own
		{"quay.io/Org/name", false},
		{"quay.io/org/name:", false},
		{"quay.io/org/name@sha256:abc", false},
		{"quay.io/org/name@" + strings.ToUpper(digest[7:]), false},
		{"quay.io/org/name@sha256:" + strings.Repeat("0A", 32), false},
		{"quay.io/org/name@md5+x:" + strings.Repeat("0", 32), false},
		{"quay.io/org/name@", false},
		{"quay.io//name", false},
		{"/name", false},
		{"name/", false},
		{"https://quay.io/name", false},
		{"has space", false},
		{"a..b", false},
		{"a___b", false},
		{"-a", false},
		{"a-", false},
		{"a.-b", false},
		{"name:.tag", false},
		{"name:" + strings.Repeat("t", 129), false},
		{"host:port/name", false},
		{"-host.example/name", false},
		{strings.Repeat("a", 256), false},
	}
	for _, test := range tests {
		c := readCatalog(t, strings.Replace(goodCatalog, `"r.example/p:2"`, `"r.example/p:2","relatedImages":[{"name":"n","image":"`+test.image+`"}]`, 1))
		if got := len(c.Problems()) == 0; got != test.ok {
			t.Errorf("%q: %v", test.image, c.Problems())
		}
	}
}
