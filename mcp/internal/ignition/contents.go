package ignition

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// maxContents is the most bytes that the contents of a file may have once they are
// decompressed: more than any MachineConfig can carry, and little enough for a
// program to hold.
const maxContents = 64 << 20

// Contents returns what is in the file at a path. A config without that file, and a
// file without contents, have none. Contents that must be fetched are an error.
func (c *Config) Contents(at string) ([]byte, error) {
	for i := range c.Storage.Files {
		if f := &c.Storage.Files[i]; f.Path == at {
			data, err := f.Contents.Bytes()
			if err != nil {
				return nil, fmt.Errorf("contents of %s: %w", at, err)
			}
			return data, nil
		}
	}
	return nil, nil
}

// Bytes decodes a data URL and what it holds.
func (r Resource) Bytes() ([]byte, error) {
	if r.Source == nil || *r.Source == "" {
		return nil, nil
	}
	data, err := dataURL(*r.Source)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Compression == nil || *r.Compression == "":
		return data, nil
	case *r.Compression != "gzip":
		return nil, fmt.Errorf("unknown compression %q", *r.Compression)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	data, err = io.ReadAll(io.LimitReader(z, maxContents+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompressing: %w", err)
	case len(data) > maxContents:
		return nil, fmt.Errorf("decompressing: more than %d MiB", maxContents>>20)
	}
	return data, nil
}

// dataURL decodes a URL as of RFC 2397.
func dataURL(s string) ([]byte, error) {
	if len(s) < 5 || !strings.EqualFold(s[:5], "data:") {
		return nil, errors.New("the source is not a data URL")
	}
	head, body, ok := strings.Cut(s[5:], ",")
	if !ok {
		return nil, errors.New("data URL without a comma")
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return nil, fmt.Errorf("data URL: %w", err)
	}
	if !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return []byte(text), nil
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' || r == ' ' {
			return -1
		}
		return r
	}, text)
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, fmt.Errorf("data URL: %w", err)
	}
	return data, nil
}
