package catalog

import (
	"errors"
	"regexp"
	"strings"
)

// checkImage refuses what is no image reference: [host[:port]/]path[:tag][@digest],
// by the grammar of container registries.
func checkImage(image string) error {
	name, digest, hasDigest := strings.Cut(image, "@")
	if hasDigest && !validDigest(digest) {
		return errImage
	}
	// A colon behind the last slash begins a tag; any other belongs to the host.
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		if !validTag(name[i+1:]) {
			return errImage
		}
		name = name[:i]
	}
	if len(name) > 255 {
		return errors.New("repository name must not be more than 255 characters")
	}
	parts := strings.Split(name, "/")
	if len(parts) > 1 && validHost(parts[0]) {
		parts = parts[1:]
	}
	for _, part := range parts {
		if !validPath(part) {
			return errImage
		}
	}
	return nil
}

var errImage = errors.New("invalid reference format")

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// validPath: lower-case letters and digits, in between ".", "_", "__" or any
// number of "-".
func validPath(part string) bool {
	for i := 0; i < len(part); {
		if isLower(part[i]) || isDigit(part[i]) {
			i++
			continue
		}
		start := i
		for i < len(part) && part[i] == part[start] {
			i++
		}
		if start == 0 || i == len(part) {
			return false
		}
		n := i - start
		switch part[start] {
		case '.':
			if n > 1 {
				return false
			}
		case '_':
			if n > 2 {
				return false
			}
		case '-':
		default:
			return false
		}
		if !isLower(part[i]) && !isDigit(part[i]) {
			return false
		}
	}
	return part != ""
}

func validTag(tag string) bool {
	if tag == "" || len(tag) > 128 || tag[0] == '.' || tag[0] == '-' {
		return false
	}
	for i := range len(tag) {
		if c := tag[i]; !isLower(c) && !isUpper(c) && !isDigit(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

func validDigest(digest string) bool {
	algorithm, sum, ok := strings.Cut(digest, ":")
	if !ok || len(sum) < 32 {
		return false
	}
	for i := range len(sum) {
		if !hex([]byte{sum[i]}) {
			return false
		}
	}
	lengths := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}
	if n, known := lengths[algorithm]; known {
		return len(sum) == n && strings.ToLower(sum) == sum
	}
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*$`).MatchString(algorithm)
}

// validHost: a DNS name or an IPv6 address in brackets, and a port.
func validHost(host string) bool {
	if strings.HasPrefix(host, "[") {
		return regexp.MustCompile(`^\[[a-fA-F0-9:]+\](?::[0-9]+)?$`).MatchString(host)
	}
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort && (port == "" || strings.Trim(port, "0123456789") != "") {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !isLower(c) && !isUpper(c) && !isDigit(c) && c != '-' {
				return false
			}
		}
	}
	return true
}
