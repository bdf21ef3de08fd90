package yamljson

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// floatPattern is what YAML takes for a decimal fraction.
var floatPattern = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolve returns what a plain scalar is by the rules of YAML 1.1. A whole
// number is num; the JSON text of another number, or a string, is str.
func resolve(s string) (k kind, num int64, str string, ok bool) {
	if s == "" {
		return kindNull, 0, "", true
	}
	switch c := s[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		return resolveNumber(s)
	case c == '~' && len(s) == 1:
		return kindNull, 0, "", true
	case len(s) > 5:
		return kindString, 0, s, true
	}
	switch s {
	case "null", "Null", "NULL":
		return kindNull, 0, "", true
	case "true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return kindTrue, 0, "", true
	case "false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return kindFalse, 0, "", true
	case "<<":
		return 0, 0, "", false
	}
	return kindString, 0, s, true
}

// resolveNumber resolves what starts as a number does. Dates stay strings.
func resolveNumber(s string) (k kind, num int64, str string, ok bool) {
	if n, ok := decimal(s); ok {
		return kindInt, n, "", true
	}
	if s[0] == '.' {
		if len(s) > 1 && s[1] >= '0' && s[1] <= '9' {
			return 0, 0, "", false
		}
		switch s {
		case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF":
			return 0, 0, "", false
		}
		return kindString, 0, s, true
	}
	for i := range len(s) {
		if !inNumbers(s[i]) {
			if strings.EqualFold(s[1:], ".inf") {
				return 0, 0, "", false
			}
			return kindString, 0, s, true
		}
	}
	plain := strings.ReplaceAll(s, "_", "")
	if n, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return kindInt, n, "", true
	}
	if _, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return 0, 0, "", false
	}
	if strings.HasPrefix(plain, "0b") || strings.HasPrefix(plain, "-0b") {
		return 0, 0, "", false
	}
	if !floatPattern.MatchString(plain) {
		return kindString, 0, s, true
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, 0, "", false
	}
	text, err := json.Marshal(f)
	if err != nil {
		return 0, 0, "", false
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && text[0] != '-' {
		return kindInt, n, "", true
	}
	return kindFloat, 0, string(text), true
}

// decimal reads a whole number in the common form: no sign but "-", no leading
// zero, at most 18 digits.
func decimal(s string) (int64, bool) {
	digits := s
	if s[0] == '-' {
		digits = s[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n int64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(s) {
		n = -n
	}
	return n, true
}

// inNumbers reports whether c can be part of a number: decimal, octal, hexadecimal,
// binary or a fraction.
func inNumbers(c byte) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		return true
	}
	switch c {
	case 'x', 'X', 'o', 'O', '_', '.', '+', '-':
		return true
	}
	return false
}
