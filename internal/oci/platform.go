package oci

import (
	"cmp"
	"fmt"
	"strings"
)

// Platform is what an image is made for. The zero value means no particular
// platform.
type Platform struct {
	// OS is the operating system as Go names it, such as linux.
	OS string `json:"os"`
	// Architecture is the processor as Go names it, such as amd64.
	Architecture string `json:"architecture"`
	// Variant is the processor's, such as v8.
	Variant string `json:"variant,omitempty"`
}

// ParsePlatform reads os/architecture or os/architecture/variant; an
// architecture alone means linux.
func ParsePlatform(s string) (Platform, error) {
	parts := strings.Split(s, "/")
	for _, p := range parts {
		if p == "" {
			return Platform{}, fmt.Errorf("platform %q has an empty part", s)
		}
	}
	switch len(parts) {
	case 1:
		return Platform{OS: "linux", Architecture: parts[0]}, nil
	case 2:
		return Platform{OS: parts[0], Architecture: parts[1]}, nil
	case 3:
		return Platform{OS: parts[0], Architecture: parts[1], Variant: parts[2]}, nil
	}
	return Platform{}, fmt.Errorf("platform %q is not os/architecture or os/architecture/variant", s)
}

// Set makes p what [ParsePlatform] reads, as a flag.Value.
func (p *Platform) Set(s string) error {
	read, err := ParsePlatform(s)
	if err == nil {
		*p = read
	}
	return err
}

// String returns os/architecture/variant, and "" for the zero value.
func (p Platform) String() string {
	if p == (Platform{}) {
		return ""
	}
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}

// accepts reports whether an image that is made for other will do. An OS that
// is left out means linux, any other part anything.
func (p Platform) accepts(other Platform) bool {
	if p == (Platform{}) {
		return true
	}
	return cmp.Or(p.OS, "linux") == other.OS &&
		(p.Architecture == "" || p.Architecture == other.Architecture) &&
		(p.Variant == "" || p.variant() == other.variant())
}

// variant returns the variant, or the only one that its architecture has.
func (p Platform) variant() string {
	if p.Architecture == "arm64" {
		return cmp.Or(p.Variant, "v8")
	}
	return p.Variant
}
