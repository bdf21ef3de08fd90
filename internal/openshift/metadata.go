package openshift

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sort"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// metadataKind is the only kind of release metadata that is understood.
const metadataKind = "cincinnati-metadata-v0"

// The keys of [Metadata.Metadata] that are understood.
const (
	KeyURL          = "url"
	KeyArchitecture = "release.openshift.io/architecture"
	KeyChannels     = "io.openshift.upgrades.graph.release.channels"
)

const (
	// MaxMetadataSize is the largest size in bytes of a file that DecodeMetadata reads.
	MaxMetadataSize = 256 << 10
	// MaxMetadataDepth is how deep lists and maps may be nested, as in the free-form
	// metadata.
	MaxMetadataDepth = 100

	maxWarning = 1 << 10 // bytes
)

// Metadata is the content of a release-metadata file. It is read-only once
// decoded.
type Metadata struct {
	Kind     string         `json:"kind"`
	Version  string         `json:"version"`
	Previous []string       `json:"previous,omitempty"`
	Next     []string       `json:"next,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`

	// Semver is Version, parsed.
	Semver *semver.Version `json:"-"`
}

// DecodeMetadata reads a release-metadata file. Keys match without regard to case,
// unknown ones are ignored; previous and next are not validated.
func DecodeMetadata(data []byte) (*Metadata, error) {
	if len(data) > MaxMetadataSize {
		return nil, fmt.Errorf("unmarshal Cincinnati metadata: more than %d bytes", MaxMetadataSize)
	}
	var m Metadata
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("unmarshal Cincinnati metadata: %w", err)
	}
	if _, depth := limit.Shape(data); depth > MaxMetadataDepth+1 {
		return nil, fmt.Errorf("unmarshal Cincinnati metadata: metadata is nested more than %d levels deep", MaxMetadataDepth)
	}
	if m.Kind != metadataKind {
		return nil, fmt.Errorf("unrecognized Cincinnati metadata kind %q", m.Kind)
	}
	if m.Version == "" {
		return nil, errors.New("missing required Cincinnati metadata version")
	}
	v, err := ParseVersion(m.Version)
	if err != nil {
		return nil, fmt.Errorf("invalid Cincinnati metadata version %q: %w", m.Version, err)
	}
	m.Semver = v
	return &m, nil
}

// KnownMetadata is what [Metadata.Known] understands of the free-form metadata.
type KnownMetadata struct {
	// URL describes the release; empty when it is not given.
	URL string
	// Multi reports that the release holds images of several architectures.
	Multi bool
	// Channels are sorted; nil when none are given.
	Channels []string
	// Warnings says, per key in the order of their names, what was not
	// understood and therefore ignored.
	Warnings []string
}

// Known reads the understood keys of the free-form metadata. A value that is
// not understood is a warning; the other keys still count.
func (m *Metadata) Known() KnownMetadata {
	var k KnownMetadata
	warn := func(format string, args ...any) {
		k.Warnings = append(k.Warnings, bounded.Text(fmt.Sprintf(format, args...), maxWarning))
	}
	text := func(key string) (string, bool) {
		v, ok := m.Metadata[key]
		if !ok {
			return "", false
		}
		s, ok := v.(string)
		if !ok {
			warn("metadata %s is %s, not a string: ignored", key, jsonType(v))
		}
		return s, ok
	}
	if s, ok := text(KeyChannels); ok {
		for _, c := range strings.Split(s, ",") {
			if c != "" {
				k.Channels = append(k.Channels, c)
			}
		}
		sort.Strings(k.Channels)
	}
	if s, ok := text(KeyArchitecture); ok {
		if s == "multi" {
			k.Multi = true
		} else {
			warn("metadata %s is %q, not \"multi\": ignored", KeyArchitecture, s)
		}
	}
	if s, ok := text(KeyURL); ok {
		if _, err := url.Parse(s); err != nil {
			warn("metadata %s is not a URL: ignored: %v", KeyURL, err)
		} else {
			k.URL = s
		}
	}
	return k
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}
