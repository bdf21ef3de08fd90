package policyengine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// signature serves signatures/sha256=DIGEST/signature-N out of sha256/DIGEST.
func (h *Handler) signature(w http.ResponseWriter, r *http.Request) (code int, kind string) {
	path := strings.TrimPrefix(r.URL.Path, h.signed+"/")
	digest, name, _ := strings.Cut(path, "/")
	algorithm, hash, equals := strings.Cut(digest, "=")
	failed := &failure{http.StatusNotFound, kindDoesNotExist, "does not exist: signature " + path}
	switch {
	case h.o.Compat && (!equals || strings.Contains(hash, "=")):
		failed = invalidParams("provided digest is in incorrect format: " + digest)
	case h.o.Compat && algorithm != "sha" && algorithm != "sha256":
		failed = invalidParams("algo not supported: " + algorithm)
	case algorithm == "sha256" && signatureName.MatchString(hash+"/"+name):
		text, changed, err := h.readSignature("sha256/" + hash + "/" + name)
		switch {
		case err == nil:
			return h.serveSignature(w, r, text, changed), ""
		case !errors.Is(err, fs.ErrNotExist):
			h.log(slog.LevelError, "A signature cannot be served", "signature", path, "error", err)
			failed = &failure{http.StatusInternalServerError, kindFileOpen, "failed to open file: unable to open signature " + path}
		}
	}
	failed.write(w, r)
	return failed.code, failed.kind
}

func (h *Handler) readSignature(name string) (text []byte, changed time.Time, err error) {
	err = panics.Catch(func() error {
		f, err := regular.Open(h.o.Signatures, name)
		if errors.Is(err, regular.ErrNotRegular) {
			return fs.ErrNotExist
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		info, err := f.Stat()
		if err != nil {
			return err
		}
		changed = info.ModTime()
		text, err = io.ReadAll(io.LimitReader(f, maxSignature+1))
		if err == nil && len(text) > maxSignature {
			err = errors.New("it is larger than 50 KiB")
		}
		return err
	})
	return text, changed, err
}

func (h *Handler) serveSignature(w http.ResponseWriter, r *http.Request, text []byte, changed time.Time) int {
	sum := sha256.Sum256(text)
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Cache-Control", "public, max-age=86400, immutable")
	header.Set("Etag", `"`+hex.EncodeToString(sum[:16])+`"`)
	header["Vary"] = varyOrigin
	recorded := &recorder{ResponseWriter: w, code: http.StatusOK}
	http.ServeContent(recorded, r, "", h.sent(changed), bytes.NewReader(text))
	return recorded.code
}

// signatureName matches the digest and the name of a signature.
var signatureName = regexp.MustCompile(`^[0-9a-f]{64}/signature-[1-9][0-9]{0,8}$`)
