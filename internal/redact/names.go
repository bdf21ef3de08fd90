package redact

import (
	"slices"
	"strings"
)

// words are those that a credential's key has, in lower case and without
// separators. The configuration that was last applied is a whole object.
var words = []string{
	"password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "bearer", "credential", "authorization", "cookie",
	"apikey", "privatekey", "accesskey", "sshkey", "clientkey", "serverkey", "hostkey", "signingkey", "encryptionkey", "masterkey", "sharedkey",
	"accountkey", "storagekey", "sessionkey", "authkey", "tlskey", "cakey", "idrsa", "ided25519", "idecdsa",
	"dockerconfig", "dockercfg", "htpasswd", "kubeconfig", "lastappliedconfiguration", "connectionstring",
}

// parts are words that are a credential's name, or end it, only where they are
// alone: between separators, or where letters become large.
var parts = []string{"pass", "pw", "psk", "auth", "jwt", "netrc", "pgpass"}

var separators = strings.NewReplacer("-", "", "_", "", ".", "", "/", "", " ", "")

// references end the keys of values that only tell where a credential is, or how
// long it lives.
var references = []string{
	"name", "names", "namespace", "ref", "refs", "reference", "file", "files", "filename", "path", "paths", "dir", "directory",
	"url", "endpoint", "type", "timeout", "expiry", "ttl", "enabled", "required", "policy",
}

// notCredentials are fields of Kubernetes and OpenShift that have the words in
// their names.
var notCredentials = []string{
	"automountserviceaccounttoken", "imagepullsecrets", "secrets", "serviceaccounttoken", "tokenrequests",
	"tokenexpirationseconds", "sshauthorizedkeys", "credentialsrequest", "credentialsrequests", "credentialsmode", "tokenconfig",
	"accesstokenmaxageseconds", "accesstokeninactivitytimeoutseconds", "tokenreview", "tokenreviews", "additionaltrustbundle",
}

// IsCredential reports whether credentials seem to be under a key, or in a
// variable, flag or header of that name. What names a Secret, or a file, has none.
// Of the key of a label or an annotation, the part behind the domain counts.
func IsCredential(key string) bool {
	key = key[strings.LastIndexByte(key, '/')+1:]
	lower := strings.ToLower(key)
	flat := separators.Replace(lower)
	if slices.Contains(notCredentials, flat) || slices.ContainsFunc(references, func(end string) bool { return strings.HasSuffix(flat, end) }) {
		return false
	}
	if strings.HasSuffix(flat, "publicapikey") { // as web analytics have it
		return false
	}
	if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(flat, word) }) {
		return true
	}
	// The key of a certificate, as ConfigMaps have it: tls.key.
	if strings.HasSuffix(lower, ".key") {
		return true
	}
	last := lastPart(key)
	return slices.Contains(parts, last)
}

// lastPart is the part of a key after the last separator or the last change from
// small to large letters, in lower case.
func lastPart(key string) string {
	start := strings.LastIndexAny(key, "-_./ ") + 1
	for i := len(key) - 1; i > start; i-- {
		if key[i] >= 'A' && key[i] <= 'Z' && key[i-1] >= 'a' && key[i-1] <= 'z' {
			start = i
			break
		}
	}
	return strings.ToLower(key[start:])
}

// hides reports whether the value of key is hidden, in a map that is the value, or
// an element of the list, of parent. It needs nothing but names.
func hides(parent, key string) bool {
	switch {
	case IsCredential(key):
		return true
	case key == "key":
		return parent == "tls" // a Route's
	case key == "source" || key == "inline" || key == "local":
		// Files of MachineConfigs.
		return parent == "contents" || parent == "append"
	case key == "hash":
		return parent == "verification"
	case key == "value":
		return parent == "httpHeaders"
	}
	return false
}

// namedHides reports whether the name of a variable or header shows that its value
// is hidden.
func namedHides(variable map[string]any) bool {
	name, _ := variable["name"].(string)
	return IsCredential(name)
}

// Together reports whether a map or list is only understood as a whole: its parts
// do not show by themselves which of them is a credential. That is so for a
// variable with its name, and for arguments.
func Together(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return namedHides(v)
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok && isFlag(s) {
				return true
			}
		}
	}
	return false
}

// isFlag reports an argument whose value, a credential, is the next argument.
func isFlag(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.ContainsAny(arg, "= \t\n") && IsCredential(strings.TrimLeft(arg, "-"))
}
