package policyengine

import "strings"

// negotiate returns the content type that a request for a graph gets, or false if
// it accepts none. It looks at one Accept value byte for byte, as the existing
// service does; in its own way it reads what that service refuses.
func negotiate(accept []string, compat bool) ([]string, bool) {
	if len(accept) == 0 {
		return vendorType, true
	}
	switch accept[0] {
	case "application/json", "application/*", "*/*", "*":
		return jsonType, true
	case vendorType[0]:
		return vendorType, true
	}
	if compat {
		return nil, false
	}
	return preferred(strings.Join(accept, ","))
}

// named is how a list names one thing: with which weight, in thousandths, and how
// far from the front. It is not named while at is 0.
type named struct{ q, at int }

func (n *named) name(q, at int) {
	if n.at == 0 || q > n.q {
		*n = named{q, at}
	}
}

// preferred chooses by a list of media ranges: of the two types that there are the
// one of the higher weight, then the one that is named first. A wildcard names
// application/json; the other type too where that one is excluded.
func preferred(list string) ([]string, bool) {
	var plain, vendor, application, anything named
	at := 0
	ok := elements(list, func(value string, q int) bool {
		at++
		switch strings.ToLower(value) {
		case jsonType[0]:
			plain.name(q, at)
		case vendorType[0]:
			vendor.name(q, at)
		case "application/*":
			application.name(q, at)
		case "*/*", "*":
			anything.name(q, at)
		default:
			kind, sub, slash := strings.Cut(value, "/")
			return slash && isToken(kind) && isToken(sub)
		}
		return true
	})
	if !ok {
		return nil, false
	}
	wild := application
	if wild.at == 0 {
		wild = anything
	}
	if plain.at == 0 {
		plain = wild
	}
	if vendor.at == 0 && plain.q == 0 {
		vendor = wild
	}
	switch {
	case vendor.q > plain.q, vendor.q == plain.q && vendor.q > 0 && vendor.at < plain.at:
		return vendorType, true
	case plain.q > 0:
		return jsonType, true
	}
	return nil, false
}

// acceptsGzip says whether a request may be answered in gzip.
func acceptsGzip(values []string) bool {
	if len(values) == 0 {
		return false
	}
	if len(values) == 1 && values[0] == "gzip" {
		return true
	}
	var gzip, anything named
	ok := elements(strings.Join(values, ","), func(value string, q int) bool {
		switch strings.ToLower(value) {
		case "gzip", "x-gzip":
			gzip.name(q, 1)
		case "*":
			anything.name(q, 1)
		}
		return isToken(value)
	})
	if gzip.at == 0 {
		gzip = anything
	}
	return ok && gzip.q > 0
}

// elements calls f with each element of a list and its weight, in thousandths, and
// reports whether the list is well formed. Empty elements do not count. See RFC
// 9110, sections 5.6.1 and 12.4.2.
func elements(list string, f func(value string, q int) bool) bool {
	for rest, more := list, true; more; {
		var value string
		value, rest = untilAny(rest, ",;")
		value = strings.Trim(value, " \t")
		q := 1000
		for strings.HasPrefix(rest, ";") {
			var parameter string
			if parameter, rest = untilAny(rest[1:], ",;"); value == "" {
				return false
			}
			parameter = strings.Trim(parameter, " \t")
			if parameter == "" {
				continue
			}
			name, text, _ := strings.Cut(parameter, "=")
			switch {
			case !isToken(name) || !isToken(text) && !isQuoted(text):
				return false
			case strings.EqualFold(name, "q"):
				q = weight(text)
				if q < 0 {
					return false
				}
			}
		}
		if value != "" && !f(value, q) {
			return false
		}
		rest, more = strings.CutPrefix(rest, ",")
	}
	return true
}

// untilAny splits s before the first of some bytes that is not within quotes.
func untilAny(s, stops string) (before, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(stops, c) >= 0:
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// weight reads 0 to 1 with up to three decimals as thousandths; -1 is an error.
func weight(s string) int {
	whole, decimals, _ := strings.Cut(s, ".")
	if whole != "0" && whole != "1" || len(decimals) > 3 {
		return -1
	}
	q := int(whole[0]-'0') * 1000
	for i, place := 0, 100; i < len(decimals); i, place = i+1, place/10 {
		if decimals[i] < '0' || decimals[i] > '9' {
			return -1
		}
		q += int(decimals[i]-'0') * place
	}
	if q > 1000 {
		return -1
	}
	return q
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}

// isQuoted reports whether s is one quoted string.
func isQuoted(s string) bool {
	if len(s) < 2 || s[0] != '"' {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i == len(s)-1
		}
	}
	return false
}
