package graphdata

// Release is a release image, or a node of a stored graph: the input of a graph
// beside the tree. Its identity is the digest, never a tag.
type Release struct {
	// Version is the release's version. Where Arch is set, its build does not
	// matter.
	Version string `json:"version"`
	// Arch is a Go architecture, or "multi". Empty: version and metadata stay as
	// they are.
	Arch string `json:"arch,omitempty"`
	// Image is the pull spec, Digest the image's; empty if it is not known.
	Image  string `json:"image,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Previous and Next are the versions that may update to the release, and that
	// it may update to.
	Previous []string `json:"previous,omitempty"`
	Next     []string `json:"next,omitempty"`
	// Metadata go into the graph.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Source says where the release was read, for errors and problems.
	Source string `json:"source,omitempty"`
}
