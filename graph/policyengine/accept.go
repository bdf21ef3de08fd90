package policyengine

import (
	"math"
	"mime"
	"regexp"
	"strconv"
	"strings"
)

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
// application/json; the other type too if that one is excluded.
func preferred(list string) ([]string, bool) {
	var plain, vendor, application, anything named
	at := 0
	ok := elements(list, func(value string, q int) bool {
		at++
		switch value {
		case jsonType[0]:
			plain.name(q, at)
		case vendorType[0]:
			vendor.name(q, at)
		case "application/*":
			application.name(q, at)
		case "*/*", "*":
			anything.name(q, at)
		default:
			return strings.Contains(value, "/")
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

// acceptsGzip reports whether a request may be answered in gzip.
func acceptsGzip(values []string) bool {
	if len(values) == 0 {
		return false
	}
	if len(values) == 1 && values[0] == "gzip" {
		return true
	}
	var gzip, anything named
	ok := elements(strings.Join(values, ","), func(value string, q int) bool {
		switch value {
		case "gzip", "x-gzip":
			gzip.name(q, 1)
		case "*":
			anything.name(q, 1)
		}
		return !strings.Contains(value, "/")
	})
	if gzip.at == 0 {
		gzip = anything
	}
	return ok && gzip.q > 0
}

// elements calls f with each element of a list, in lower case, and its weight, in
// thousandths, and reports whether the list is well formed. Empty elements do not
// count. See RFC 9110, sections 5.6.1 and 12.4.2.
func elements(list string, f func(value string, q int) bool) bool {
	for list != "" {
		var element string
		element, list = cutElement(list)
		if strings.Trim(element, " \t") == "" {
			continue
		}
		value, parameters, err := mime.ParseMediaType(element)
		if err != nil {
			return false
		}
		q := 1000
		if text, ok := parameters["q"]; ok {
			if !weight.MatchString(text) {
				return false
			}
			of, _ := strconv.ParseFloat(text, 64)
			q = int(math.Round(1000 * of))
		}
		if !f(value, q) {
			return false
		}
	}
	return true
}

// weight is 0 to 1 with up to three decimals.
var weight = regexp.MustCompile(`^(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$`)

// cutElement cuts a list at its first comma that is not within quotes.
func cutElement(list string) (element, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}
