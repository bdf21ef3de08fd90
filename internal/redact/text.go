package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"iter"
	"net/url"
	"regexp"
	"strings"
)

// Text returns a text for people, an error's or a server's, without credentials:
// users, queries and fragments of URLs, private keys, pull secrets, web and bearer
// tokens, and what is assigned to a name that looks like a credential's.
func (r *Redactor) Text(s string) string { return walker{r: r}.prose(s) }

// Text is Redactor.Text without a key.
func Text(s string) string { return new(Redactor).Text(s) }

// Error returns err, or, if its text has credentials, an error that has the text
// without them. errors.Is and As find in it what they find in err.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	shown := r.Text(text)
	if shown == text {
		return err
	}
	return &hiddenError{shown, err}
}

// Error is Redactor.Error without a key.
func Error(err error) error { return new(Redactor).Error(err) }

// hiddenError has no Unwrap, so that nobody prints what is hidden.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string        { return e.text }
func (e *hiddenError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *hiddenError) As(target any) bool   { return errors.As(e.err, target) }

var (
	marked     = regexp.MustCompile(`^\(redacted(-[0-9a-f]{12})?\)$`)
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|$)`)
	pullSecret = regexp.MustCompile(`\\*["']?auths\\*["']?\s*:\s*[{\[]`)
	dataURL    = regexp.MustCompile(`\bdata:[A-Za-z0-9/+.;=_"-]*,[^\s"'<>]+`)
	links      = regexp.MustCompile("[A-Za-z][A-Za-z0-9+.-]*://[^\\s\"'<>`]+")
	userAtHost = regexp.MustCompile(`(^|[\s"'=,(])([^\s/@:"'=,()]+:[^\s@"'/]+)@([A-Za-z0-9\[][^\s"']*)`)
	address    = regexp.MustCompile(`^[^\s/@:"'=,()]+:[^\s"']+@[A-Za-z0-9.\[\]-]+(:[0-9]+)?(/[^\s"']*)?$`) // without a scheme
	webToken   = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)+`)
	scheme     = regexp.MustCompile(`(?i)\b(AccessToken|Bearer|Basic)([ +]+)[A-Za-z0-9+/=_:.~-]{16,}`)
	flag       = regexp.MustCompile(`(?:^|[\s"'])(--?[A-Za-z][A-Za-z0-9_.-]*)[ \t]+`)
	isScheme   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	anchor     = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)*$`) // of a page's heading
	// A block of YAML that has fields, each of which is judged by itself.
	blockOfFields = regexp.MustCompile(`^\r?\n[ \t]+(- )?[A-Za-z][A-Za-z0-9_.-]*:`)
	// The path of a file: below a directory of the system, or with an extension.
	file    = regexp.MustCompile(`^["']?/(?:(?:etc|var|run|tmp|srv|usr|opt|home|root|mnt|dev)/[A-Za-z0-9_./-]+|[A-Za-z0-9_./-]*/?[A-Za-z0-9_-]+\.[a-z]{2,6})["',;)]*$`)
	aDigest = regexp.MustCompile(`^(sha256|sha384|sha512):[0-9a-f]+`)
)

// Echo returns what a server says, without what it may repeat of a request: the
// credentials of [Redactor.With], web and bearer tokens.
func (r *Redactor) Echo(s string) string {
	if r.known != nil {
		s = r.known.Replace(s)
	}
	if strings.Contains(s, "eyJ") {
		s = webToken.ReplaceAllStringFunc(s, func(m string) string { return r.Hidden(m) })
	}
	if strings.Contains(s, "earer") || strings.Contains(s, "asic") || strings.Contains(s, "oken") || strings.Contains(s, "EARER") || strings.Contains(s, "ASIC") {
		s = replaceGroups(scheme, s, func(m []string) string { return m[1] + m[2] + r.Hidden(m[0][len(m[1])+len(m[2]):]) })
	}
	return s
}

// prose hides what is recognisable in any text.
func (w walker) prose(s string) string {
	s = w.r.Echo(s)
	if holdsPullSecret(s) {
		at := pullSecret.FindStringIndex(s)[0]
		s = s[:at] + w.r.Hidden(s[at:])
	}
	if strings.Contains(s, "PRIVATE KEY") {
		s = privateKey.ReplaceAllStringFunc(s, func(m string) string { return w.r.Hidden(m) })
	}
	if strings.Contains(s, "data:") {
		s = dataURL.ReplaceAllStringFunc(s, func(m string) string {
			media, content, _ := strings.Cut(m, ",")
			return media + "," + w.r.Hidden(content)
		})
	}
	if strings.Contains(s, "://") {
		s = links.ReplaceAllStringFunc(s, func(m string) string { return w.link(m) })
	}
	if strings.Contains(s, "@") {
		s = replaceGroups(userAtHost, s, func(m []string) string {
			if aDigest.MatchString(m[3]) || masked(m[2]) {
				return m[0]
			}
			return m[1] + w.link(m[2]+"@"+m[3])
		})
	}
	return w.assigned(s, false)
}

// text hides what else a value of an object may have: it may be a document, a
// command line, or encoded.
func (w walker) text(s string) string {
	switch {
	case s == "":
		return s
	case holdsPullSecret(s), strings.Contains(s, "PRIVATE KEY"), isKubeconfig(s), w.encodes(s):
		return w.r.Hidden(s)
	case brokenURL(s):
		scheme, rest, _ := strings.Cut(s, "://")
		return scheme + "://" + w.r.Hidden(rest)
	case address.MatchString(s):
		return w.link(s)
	}
	s = w.prose(s)
	if blockUnder(s) {
		return w.r.Hidden(s)
	}
	s = w.assigned(s, true)
	return w.flags(s)
}

// URL returns a text that is to be a URL without its user, query and fragment. Of
// one that cannot be read, only the scheme is left.
func (r *Redactor) URL(s string) string {
	if r.known != nil {
		s = r.known.Replace(s)
	}
	return walker{r: r}.link(s)
}

// URL is Redactor.URL without a key.
func URL(s string) string { return new(Redactor).URL(s) }

func (w walker) link(s string) string {
	before, rest, found := strings.Cut(s, "://")
	if !found || !isScheme.MatchString(before) {
		before, rest = "", s
	} else {
		before += "://"
	}
	if _, err := url.Parse(s); err != nil && (before != "" || strings.ContainsAny(s, "@?#")) {
		return before + w.r.Hidden(rest)
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	end := strings.IndexByte(rest, '/')
	if end < 0 || before == "" {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	if at := strings.LastIndexByte(path, '@'); at >= 0 && strings.Contains(authority, ":") && !aDigest.MatchString(path[at+1:]) {
		return before + w.r.Hidden(rest) // the path may be a part of a password
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 && !aDigest.MatchString(authority[at+1:]) && !masked(authority[:at]) {
		user, host := authority[:at], authority[at+1:]
		authority = host // as if there were no user, in texts without digits
		if len(w.r.key) > 0 {
			authority = w.r.Hidden(user) + "@" + host
		}
	}
	out := before + authority + path
	if hasQuery && query != "" {
		out += "?" + w.part(query)
	}
	if hasFragment && fragment != "" {
		if !w.anchors || !anchor.MatchString(fragment) {
			fragment = w.part(fragment)
		}
		out += "#" + fragment
	}
	return out
}

// masked reports a user whose password is asterisks, as oc adm inspect leaves it.
func masked(user string) bool {
	_, password, set := strings.Cut(user, ":")
	return set && strings.Trim(password, "*") == ""
}

// part is a query or a fragment.
func (w walker) part(s string) string {
	if w.mild {
		return w.assigned(s, false)
	}
	return w.r.Hidden(s)
}

// brokenURL reports a text that begins as a URL and cannot be read as one, so that
// it is not clear where its password ends.
func brokenURL(s string) bool {
	before, _, found := strings.Cut(s, "://")
	if !found || !isScheme.MatchString(before) || strings.ContainsAny(s, "\n") || !strings.Contains(s, "@") {
		return false
	}
	_, err := url.Parse(s)
	return err != nil
}

// assigned hides what is assigned, by = or in JSON, to names of credentials. In a
// document, that is the rest of a line of YAML, too.
func (w walker) assigned(s string, document bool) string {
	if !strings.ContainsAny(s, ":=") {
		return s
	}
	var out strings.Builder
	done := 0
	for a := range assignments(s) {
		if a.start < done || !IsCredential(a.name) {
			continue
		}
		end := a.value
		yaml := a.colon && !a.quoted
		if yaml && (!document || a.start > 0 && !strings.ContainsRune("\n\r\t {,[\"'", rune(s[a.start-1]))) {
			continue // a part of a path, or of a sentence
		}
		length := valueLength(s[end:], yaml)
		value := s[end : end+length]
		if length == 0 || plainValue(value) || isFile(value) {
			continue
		}
		quote := ""
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			quote, value = value[:1], value[1:len(value)-1]
		}
		out.WriteString(s[done:end])
		out.WriteString(quote + w.r.Hidden(value) + quote)
		done = end + length
	}
	out.WriteString(s[done:])
	return out.String()
}

// assignment is a name with what follows : or =, as in TOKEN=x, "token": "x" and
// token: x.
type assignment struct {
	name   string
	start  int // of the name
	value  int // where that begins
	quoted bool
	colon  bool
}

// assignments yields what may be assignments in a text.
func assignments(s string) iter.Seq[assignment] {
	return func(yield func(assignment) bool) {
		for at := 0; ; at++ {
			n := strings.IndexAny(s[at:], ":=")
			if n < 0 {
				return
			}
			at += n
			end := at
			for end > 0 && (s[end-1] == ' ' || s[end-1] == '\t') {
				end--
			}
			quoted := end > 0 && (s[end-1] == '"' || s[end-1] == '\'')
			if quoted {
				for end--; end > 0 && s[end-1] == '\\'; {
					end--
				}
			}
			start := end
			for start > 0 && isNameByte(s[start-1]) {
				start--
			}
			value := at + 1
			for value < len(s) && (s[value] == ' ' || s[value] == '\t') {
				value++
			}
			for value < len(s)-1 && s[value] == '\\' && s[value+1] == '"' {
				value++ // JSON within JSON
			}
			for start < end && s[start] == '-' {
				start++
			}
			if start < end && !yield(assignment{s[start:end], start, value, quoted, s[at] == ':'}) {
				return
			}
		}
	}
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

// valueLength returns how much of s, from its start, is one value; line: it is the
// rest of a line of YAML unless it is quoted.
func valueLength(s string, line bool) int {
	if s == "" {
		return 0
	}
	if s[0] == '"' || s[0] == '\'' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case s[0]:
				return i + 1
			}
		}
		return len(s)
	}
	stops := " \t\r\n\"'`"
	if line {
		stops = "\r\n"
	}
	if n := strings.IndexAny(s, stops); n >= 0 {
		return n
	}
	return len(s)
}

// isFile reports the path of a file, which says only where a credential is.
func isFile(s string) bool { return file.MatchString(s) }

// plainValue reports a value that reveals nothing.
func plainValue(s string) bool {
	switch strings.TrimRight(strings.TrimSpace(s), ",}]") {
	case "", "null", "true", "false", "~", `""`, "''":
		return true
	}
	return false
}

// blockUnder reports a document in which the value of a credential's key follows
// on other lines, or is made of parts.
func blockUnder(s string) bool {
	if !strings.ContainsAny(s, "\n{[") {
		return false
	}
	for a := range assignments(s) {
		if !a.colon || !IsCredential(a.name) {
			continue
		}
		rest := s[a.value:]
		switch {
		case strings.HasPrefix(rest, "|"), strings.HasPrefix(rest, ">"):
			return true
		case strings.EqualFold(a.name, "secret"):
			// The Secret that a volume has, with its name.
		case strings.EqualFold(a.name, "authorization") && blockOfFields.MatchString(rest):
			// What a proxy or a client is to check, field by field.
		case strings.HasPrefix(rest, "{"), strings.HasPrefix(rest, "["):
			return true
		case strings.HasPrefix(rest, "\n"), strings.HasPrefix(rest, "\r\n"):
			return true
		}
	}
	return false
}

// flags hides the arguments of flags in a command line.
func (w walker) flags(s string) string {
	if !strings.Contains(s, "-") {
		return s
	}
	var out strings.Builder
	done := 0
	for _, m := range flag.FindAllStringSubmatchIndex(s, -1) {
		if m[0] < done || !IsCredential(strings.TrimLeft(s[m[2]:m[3]], "-")) {
			continue
		}
		end := m[1]
		length := valueLength(s[end:], false)
		if length == 0 || strings.HasPrefix(s[end:], "--") || isFile(s[end:end+length]) {
			continue
		}
		out.WriteString(s[done:end])
		out.WriteString(w.r.Hidden(s[end : end+length]))
		done = end + length
	}
	out.WriteString(s[done:])
	return out.String()
}

func holdsPullSecret(s string) bool { return strings.Contains(s, "auths") && pullSecret.MatchString(s) }

// isKubeconfig reports a kubeconfig, whose users are credentials.
func isKubeconfig(s string) bool {
	return strings.Contains(s, "current-context") && strings.Contains(s, "users") ||
		strings.Contains(s, "client-key-data") || strings.Contains(s, "client-certificate-data")
}

// maxDecoded bounds, in bytes, what is decoded to look for credentials.
const maxDecoded = 1 << 20

// encodes reports a text in base64, perhaps compressed by gzip, that holds
// credentials.
func (w walker) encodes(s string) bool {
	const shortest = 16
	if len(s) < shortest || !isBase64(s) {
		return false
	}
	compact := strings.TrimRight(strings.Join(strings.Fields(s), ""), "=")
	raw, err := base64.RawStdEncoding.DecodeString(compact)
	if err != nil {
		raw, err = base64.RawURLEncoding.DecodeString(compact)
		if err != nil {
			return false
		}
	}
	if z, err := gzip.NewReader(bytes.NewReader(raw)); err == nil {
		raw, _ = io.ReadAll(io.LimitReader(z, maxDecoded))
	}
	plain := string(raw[:min(len(raw), maxDecoded)])
	return w.text(plain) != plain
}

// isBase64 reports a text of lines of base64.
func isBase64(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case c == '+' || c == '/' || c == '-' || c == '_' || c == '=' || c == '\n' || c == '\r':
		default:
			return false
		}
	}
	return true
}

// replaceGroups replaces each match of a pattern, whose groups f gets.
func replaceGroups(pattern *regexp.Regexp, s string, f func(groups []string) string) string {
	matches := pattern.FindAllStringSubmatchIndex(s, -1)
	if matches == nil {
		return s
	}
	var out strings.Builder
	done := 0
	for _, m := range matches {
		groups := make([]string, len(m)/2)
		for i := range groups {
			if m[2*i] >= 0 {
				groups[i] = s[m[2*i]:m[2*i+1]]
			}
		}
		out.WriteString(s[done:m[0]])
		out.WriteString(f(groups))
		done = m[1]
	}
	out.WriteString(s[done:])
	return out.String()
}
