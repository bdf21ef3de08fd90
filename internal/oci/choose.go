package oci

// choose returns the only image for a platform among entries and the indexes in
// them.
func (f *finder) choose(entries []Descriptor, p Platform) (*Image, error) {
	images, err := f.images(nil, entries, 1)
	if err != nil {
		return nil, err
	}
	digests := map[string]bool{} // one image may be named for several platforms
	for _, d := range images {
		digests[d.Digest] = true
	}
	refused := &PlatformError{Platform: p}
	var matching []Descriptor
	for _, d := range images {
		refused.Available = append(refused.Available, describe(d))
		sole := d.Platform == nil && len(digests) == 1
		fits := d.Platform != nil && p.accepts(*d.Platform)
		if (p == (Platform{}) || sole || fits) && digests[d.Digest] {
			matching = append(matching, d)
			digests[d.Digest] = false // once is enough
		}
	}
	if refused.Matching = len(matching); refused.Matching != 1 {
		return nil, refused
	}
	m, err := f.read(matching[0])
	if err != nil {
		return nil, err
	}
	return f.image(matching[0], m)
}

// images appends the images among entries and the indexes in them.
func (f *finder) images(images, entries []Descriptor, depth int) ([]Descriptor, error) {
	if err := f.budget.see(entries, depth); err != nil {
		return nil, err
	}
	for _, d := range entries {
		switch {
		case isArtifact(d):
		case isIndex(d.MediaType):
			m, err := f.read(d)
			if err == nil {
				images, err = f.images(images, m.Manifests, depth+1)
			}
			if err != nil {
				return nil, err
			}
		case isImage(d.MediaType) || d.MediaType == "":
			images = append(images, d)
		}
	}
	return images, nil
}

// isArtifact reports whether an entry is about another one, such as an
// attestation, and no image.
func isArtifact(d Descriptor) bool {
	switch d.ArtifactType {
	case "", "application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json":
	default:
		return true
	}
	return d.Annotations["vnd.docker.reference.type"] == "attestation-manifest" ||
		d.Platform != nil && d.Platform.OS == "unknown" && d.Platform.Architecture == "unknown"
}
