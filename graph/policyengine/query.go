package policyengine

import (
	"strings"
)

// parameters are what a request for a graph says, decoded. Of a name that comes
// twice the last value counts.
type parameters struct {
	channel, arch       string
	hasChannel, hasArch bool
	missing             []string // of the mandatory ones, in their order
}

// parse reads a query as forms are read: a blank may be written +, and what is no
// escape stands for itself. So every query can be read.
func parse(query string, mandatory []string) parameters {
	var p parameters
	found := make([]bool, len(mandatory))
	for more := query != ""; more; {
		var pair string
		pair, query, more = strings.Cut(query, "&")
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name = unescape(name)
		for i := range mandatory {
			found[i] = found[i] || mandatory[i] == name
		}
		switch name {
		case "channel":
			p.channel, p.hasChannel = unescape(value), true
		case "arch":
			p.arch, p.hasArch = unescape(value), true
		}
	}
	for i, name := range mandatory {
		if !found[i] {
			p.missing = append(p.missing, name)
		}
	}
	return p
}

// unescape undoes the escapes of forms.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(s) && hexDigit(s[i+1]) >= 0 && hexDigit(s[i+2]) >= 0:
			c = byte(hexDigit(s[i+1])<<4 | hexDigit(s[i+2]))
			i += 2
		}
		b = append(b, c)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// check returns what is wrong with channel and arch.
func (p *parameters) check() *failure {
	switch {
	case !p.hasChannel:
		return missingParams("channel")
	case len(p.channel) > maxChannel:
		return invalidParams("channel is longer than 128 bytes")
	case !isChannel(p.channel):
		return invalidParams(`channel '` + p.channel + `' does not match regex '^[0-9a-z\-\.]+$'`)
	case len(p.arch) > maxArch:
		return invalidParams("arch is longer than 32 bytes")
	case !isArch(p.arch):
		return invalidParams(`arch '` + p.arch + `' does not match regex '^[0-9a-z]+$'`)
	}
	return nil
}

func isChannel(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLowerOrDigit(c) && c != '-' && c != '.' {
			return false
		}
	}
	return s != ""
}

func isArch(s string) bool {
	for i := range len(s) {
		if !isLowerOrDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func isLowerOrDigit(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }
