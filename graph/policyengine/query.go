package policyengine

import (
	"encoding/hex"
	"regexp"
	"strings"
)

// parameters are what a request for a graph says, decoded. Of a name that comes
// twice the last value counts.
type parameters struct {
	channel, arch       string
	hasChannel, hasArch bool
	missing             []string // of the mandatory ones, in their order
}

// parse reads a query as forms are read: a blank may be written +, and anything
// that is not an escape stands for itself. So every query can be read.
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

var (
	escape         = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	channelPattern = regexp.MustCompile(`^[0-9a-z\-\.]+$`)
	archPattern    = regexp.MustCompile(`^[0-9a-z]+$`)
)

// unescape undoes the escapes of forms.
func unescape(s string) string {
	s = strings.ReplaceAll(s, "+", " ")
	if strings.Contains(s, "%") {
		s = escape.ReplaceAllStringFunc(s, func(e string) string {
			b, _ := hex.DecodeString(e[1:]) // two digits
			return string(b)
		})
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// check returns what is wrong with channel and arch.
func (p *parameters) check() *failure {
	switch {
	case !p.hasChannel:
		return missingParams("channel")
	case len(p.channel) > maxChannel:
		return invalidParams("channel is longer than 128 bytes")
	case !channelPattern.MatchString(p.channel):
		return invalidParams("channel '" + p.channel + "' does not match regex '" + channelPattern.String() + "'")
	case len(p.arch) > maxArch:
		return invalidParams("arch is longer than 32 bytes")
	case !archPattern.MatchString(p.arch):
		return invalidParams("arch '" + p.arch + "' does not match regex '" + archPattern.String() + "'")
	}
	return nil
}
