package ocm

import (
	"encoding/base64"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// redactor cuts secrets out of what servers say. A server may repeat the
// request's header in any of its answers.
type redactor struct{ secrets *strings.Replacer }

const redacted = "(redacted)"

// newRedactor hides a token as it is, without its padding, escaped for a URL,
// decoded, and as the password of what it decodes to. A short password, or a
// short token decoded or without padding, stays: ordinary words contain it.
func newRedactor(token string) redactor {
	const short = 8
	var pairs []string
	hide := func(secret string) {
		for _, s := range []string{secret, url.QueryEscape(secret), strings.ToLower(url.QueryEscape(secret)), url.PathEscape(secret)} {
			pairs = append(pairs, s, redacted)
		}
	}
	if token == "" {
		return redactor{}
	}
	hide(token)
	if s := strings.TrimRight(token, "="); len(s) >= short {
		hide(s)
	}
	if decoded, err := base64.StdEncoding.DecodeString(token); err == nil && len(decoded) >= short {
		hide(string(decoded))
		if _, password, ok := strings.Cut(string(decoded), ":"); ok && len(password) >= short {
			hide(password)
		}
	}
	return redactor{strings.NewReplacer(pairs...)}
}

// text cuts the secrets out of s, and what looks like one: a transport that
// authenticates has secrets of its own, web tokens mostly.
func (r redactor) text(s string) string {
	if r.secrets != nil {
		s = r.secrets.Replace(s)
	}
	if webToken.MatchString(s) {
		s = webToken.ReplaceAllString(s, redacted)
	}
	if scheme.MatchString(s) {
		s = scheme.ReplaceAllString(s, "$1 "+redacted)
	}
	return s
}

var (
	webToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)+`)
	scheme   = regexp.MustCompile(`(?i)\b(AccessToken|Bearer|Basic)[ +]+[A-Za-z0-9+/=_:.~-]{16,}`)
)

// line is text for one line of a log.
func (r redactor) line(s string) string {
	const longest = 1024
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, r.text(s))
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strings.TrimSpace(s)
}

// err returns an error that says the same without secrets.
func (r redactor) err(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); r.text(text) != text {
		return errors.New(r.line(text)) // the chain holds the secret as well
	}
	return err
}
