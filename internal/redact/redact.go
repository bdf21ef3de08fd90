// Package redact hides credentials in what reports show of objects: by the names
// of fields, keys and variables, users in URLs, and private keys in PEM. What is
// hidden is shown as a digest, so that two values can still be told apart.
package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Digest stands for a value that is hidden: (sha256:12 digits), of a text
// itself and of the JSON of everything else.
func Digest(value any) string {
	text, ok := value.(string)
	if !ok {
		raw, err := json.Marshal(value)
		if err != nil {
			raw = fmt.Append(nil, value)
		}
		text = string(raw)
	}
	sum := sha256.Sum256([]byte(text))
	return "(sha256:" + hex.EncodeToString(sum[:6]) + ")"
}

// Value returns a value in which credentials are hidden. It shares nothing that
// has changed with the value, and copies maps and lists.
func Value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			_, refers := e.(map[string]any)
			refers = refers && strings.EqualFold(key, "secret") // as of a volume, with the Secret's name
			if IsCredential(key) && !refers || key == "value" && NamesCredential(v) {
				out[key] = Digest(e)
			} else {
				out[key] = Value(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = Value(v[i])
		}
		return out
	case string:
		if userInURL.MatchString(v) || strings.Contains(v, privateKey) {
			return Digest(v)
		}
	}
	return value
}

// userInURL finds a URL with a user, and perhaps a password, as of a proxy.
var userInURL = regexp.MustCompile(`://[^/\s"]*@`)

// privateKey is in the first line of a private key in PEM, of whatever algorithm.
const privateKey = "PRIVATE KEY-----"

// NamesCredential reports a variable whose name looks like that of a credential.
func NamesCredential(variable map[string]any) bool {
	name, _ := variable["name"].(string)
	return IsCredential(name)
}

// words are those that a credential's key has, in lower case and without
// separators. The configuration that was last applied is a whole object.
var words = []string{
	"password", "passwd", "secret", "token", "credential", "apikey", "privatekey", "accesskey", "dockerconfig", "htpasswd",
	"kubeconfig", "lastappliedconfiguration",
}

var separators = strings.NewReplacer("-", "", "_", "", ".", "")

// references end the keys of what only tells where a credential is.
var references = []string{"name", "names", "namespace", "ref", "refs", "reference"}

// notCredentials are fields of Kubernetes that have the words in their names.
var notCredentials = []string{
	"automountserviceaccounttoken", "imagepullsecrets", "secrets", "serviceaccounttoken", "tokenrequests",
	"tokenexpirationseconds",
}

// IsCredential reports a key, or a path, that looks as if credentials stood there.
// What names a Secret does not.
func IsCredential(key string) bool {
	key = separators.Replace(strings.ToLower(key))
	if slices.Contains(notCredentials, key) || slices.ContainsFunc(references, func(end string) bool { return strings.HasSuffix(key, end) }) {
		return false
	}
	for _, word := range words {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}
