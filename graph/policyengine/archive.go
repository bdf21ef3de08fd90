package policyengine

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// graphData serves /graph-data, the archive that the graphs were made of, with
// ranges.
func (h *Handler) graphData(w http.ResponseWriter, r *http.Request) (code int, kind string) {
	var file io.ReadSeeker
	var changed time.Time
	var size int64
	err := panics.Catch(func() (err error) {
		file, changed, err = h.o.GraphData()
		if err == nil && file == nil {
			err = errors.New("there is none")
		}
		if err != nil {
			return err
		}
		size, err = file.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
		return err
	})
	if c, ok := file.(io.Closer); ok {
		defer func() { _ = c.Close() }() // it was only read
	}
	if err != nil {
		h.log(slog.LevelError, "The graph data cannot be served", "error", err)
		failed := &failure{http.StatusInternalServerError, kindFileOpen, "failed to open file: unable to open the graph data"}
		failed.write(w, r)
		return failed.code, failed.kind
	}
	header := w.Header()
	header.Set("Content-Type", "application/gzip")
	header.Set("Content-Disposition", `attachment; filename="graph-data.tar.gz"`)
	header["Cache-Control"] = h.maxAge
	header["Vary"] = varyOrigin
	if !changed.IsZero() {
		header.Set("Etag", `"`+strconv.FormatInt(changed.UnixNano(), 16)+"-"+strconv.FormatInt(size, 16)+`"`)
	}
	recorded := &recorder{ResponseWriter: w, code: http.StatusOK}
	http.ServeContent(recorded, r, "", h.sent(changed), file)
	return recorded.code, ""
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets [http.ResponseController] reach what it needs.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// ReadFrom keeps the server's own way to send files.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) { return io.Copy(r.ResponseWriter, src) }
