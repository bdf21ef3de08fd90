package redact

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// With returns a redactor that hides these credentials, too, wherever they are: a
// server may repeat the header of a request in its answer. They are found as they
// are, without padding, escaped for a URL, decoded, and as the password that they
// decode to. A short password, or a short credential decoded or without padding, is
// not: ordinary words contain it.
func (r *Redactor) With(secrets ...string) *Redactor {
	var all []string
	for _, s := range secrets {
		all = append(all, forms(s)...)
	}
	if len(all) == 0 {
		return r
	}
	// The longest first, or a part of one would be hidden alone.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, s := range slices.Compact(all) {
		pairs = append(pairs, s, r.Hidden(s))
	}
	return &Redactor{key: r.key, known: strings.NewReplacer(pairs...)}
}

// forms are those in which a credential may occur.
func forms(secret string) []string {
	const short = 8
	var out []string
	add := func(s string) {
		out = append(out, s, url.QueryEscape(s), strings.ToLower(url.QueryEscape(s)), url.PathEscape(s))
	}
	if secret == "" {
		return nil
	}
	add(secret)
	if s := strings.TrimRight(secret, "="); len(s) >= short {
		add(s)
	}
	if decoded, err := base64.StdEncoding.DecodeString(secret); err == nil && len(decoded) >= short {
		add(string(decoded))
		if _, password, ok := strings.Cut(string(decoded), ":"); ok && len(password) >= short {
			add(password)
		}
	}
	return out
}

// Line is [Redactor.Text] for one line: without control characters, and cut.
func (r *Redactor) Line(s string) string {
	const longest = 1024
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, r.Text(s))
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strings.TrimSpace(s)
}
