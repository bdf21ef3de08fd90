package httpclient

import (
	"net/url"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Redact removes the user info of a URL, and cuts what is too long to show.
func Redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(a URL that cannot be parsed)"
	}
	u.User = nil
	return bounded.Text(u.String(), 1<<10)
}
