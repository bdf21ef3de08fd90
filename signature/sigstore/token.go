package sigstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// maxChallenge bounds what is read of a header that asks for authorization.
const maxChallenge = 4 << 10

// challenge is what a server wants to see before it answers.
type challenge struct {
	scheme string // lower case
	params map[string]string
}

// parseChallenge reads one WWW-Authenticate header that holds one challenge:
// a scheme, and parameters with or without quotes. What cannot be read ends it.
func parseChallenge(header string) challenge {
	header = header[:min(len(header), maxChallenge)]
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	c := challenge{scheme: strings.ToLower(scheme), params: map[string]string{}}
	for {
		name, after, ok := strings.Cut(strings.TrimLeft(rest, ", \t"), "=")
		if !ok {
			return c
		}
		var value string
		if quoted, is := strings.CutPrefix(after, `"`); is {
			if value, rest, ok = unquote(quoted); !ok {
				return c
			}
		} else {
			value, rest, _ = strings.Cut(after, ",")
			value = strings.TrimSpace(value)
		}
		c.params[strings.ToLower(strings.TrimSpace(name))] = value
	}
}

// unquote reads a quoted text behind its first quote.
func unquote(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// authorize returns the Authorization header that satisfies one of the
// challenges: a token for reading the repository, or the login.
func (s *session) authorize(ctx context.Context, headers []string) (string, error) {
	for _, h := range headers[:min(len(headers), maxChallenges)] {
		switch c := parseChallenge(h); {
		case c.scheme == "bearer":
			return s.token(ctx, c.params)
		case c.scheme == "basic" && s.login != "":
			return s.login, nil
		}
	}
	return "", errors.New("the registry wants a login")
}

// token asks the registry's token service for a token to read the repository.
func (s *session) token(ctx context.Context, params map[string]string) (string, error) {
	realm, err := url.Parse(params["realm"])
	switch {
	case err != nil || realm.Host == "":
		return "", errors.New("the registry names no token service")
	case realm.Scheme != "https" && realm.Scheme != s.base.Scheme:
		return "", fmt.Errorf("token service with scheme %q refused", short(realm.Scheme))
	}
	realm.User, realm.Fragment = nil, ""
	query := realm.Query()
	query.Set("scope", "repository:"+s.path+":pull")
	if service := params["service"]; service != "" {
		query.Set("service", service)
	}
	realm.RawQuery = query.Encode()
	header := http.Header{"Accept": {"application/json"}}
	if s.login != "" && strings.EqualFold(realm.Host, s.base.Host) && realm.Scheme == s.base.Scheme {
		header.Set("Authorization", s.login)
	}
	resp, err := s.fetch(ctx, s.blobs, realm.String(), header)
	switch {
	case err != nil:
		return "", fmt.Errorf("token service: %w", err)
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("token service: %w", statusError(resp.StatusCode))
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	// The text of a JSON error could hold parts of the token.
	if decode(resp.Body, &answer) != nil {
		return "", errors.New("token service: the answer is not JSON with keys that occur once")
	}
	token := answer.Token
	if token == "" {
		token = answer.AccessToken
	}
	if len(token) > maxToken {
		return "", &LimitError{Limit: limitToken, Max: maxToken, What: "token service"}
	}
	if token == "" || strings.Trim(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=") != "" {
		return "", errors.New("token service: no token in the answer")
	}
	return "Bearer " + token, nil
}
