package httpclient

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// readBody appends the body to buf. The body of another status than 2xx is cut at
// MaxErrorBody, too.
func (c *Client) readBody(resp *http.Response, buf []byte) ([]byte, error) {
	most := c.o.MaxBody
	cut := resp.StatusCode/100 != 2
	if cut {
		most = min(most, MaxErrorBody)
	}
	tooLarge := &limit.LimitError{Limit: "MaxBody", Max: most, What: "bytes in the answer"}

	body := io.Reader(resp.Body)
	size := resp.ContentLength // -1 when unknown
	if size == 0 {
		return buf, nil
	}
	if !c.o.NoDecompression {
		switch encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); encoding {
		case "", "identity":
		case "gzip", "x-gzip":
			z, err := gzip.NewReader(body)
			if err != nil {
				return buf, fmt.Errorf("gzip: %w", err)
			}
			body, size = z, -1
		default:
			return buf, fmt.Errorf("the server used Content-Encoding %q without being asked to", encoding)
		}
	}
	if size > most && !cut {
		return buf, tooLarge
	}
	// A length is a claim: it earns room for at most a megabyte in advance.
	if room := max(min(size, 1<<20)+1, 4<<10); int64(cap(buf)) < min(room, most+1) {
		buf = make([]byte, 0, min(room, most+1))
	}

	for {
		if len(buf) == cap(buf) {
			// Doubling copies each byte once on average, append's growth of large
			// slices four times.
			room := 2 * int64(cap(buf))
			if room >= most {
				room = most + 1
			}
			buf = append(make([]byte, 0, room), buf...)
		}
		room := buf[len(buf):cap(buf)]
		if left := most + 1 - int64(len(buf)); int64(len(room)) > left {
			room = room[:left]
		}
		n, err := body.Read(room)
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > most {
			return buf[:most], tooLarge
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
