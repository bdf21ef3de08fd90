package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"text/template"
)

// templateData is what the files of manifests/ can refer to, and all of it.
type templateData struct {
	ReleaseImage   string
	ClusterProfile string
	Images         map[string]string
}

// errTooLarge stops a template whose result passes the limit of a file.
var errTooLarge = errors.New("larger than the limit of a file")

// render executes a file of manifests/ as a template. Its result may have at
// most limit bytes.
func render(name string, source []byte, data templateData, limit int64) ([]byte, error) {
	t, err := template.New(name).Parse(string(source))
	if err != nil {
		return nil, err
	}
	out := &limitedBuffer{limit: limit}
	out.Grow(len(source) + 1024)
	if err := t.Execute(out, data); err != nil {
		if errors.Is(err, errTooLarge) {
			return nil, fmt.Errorf("rendered: %w", fileSizeError(limit))
		}
		return nil, err
	}
	return out.Bytes(), nil
}

type limitedBuffer struct {
	bytes.Buffer
	limit int64
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if int64(b.Len())+int64(len(p)) > b.limit {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}
