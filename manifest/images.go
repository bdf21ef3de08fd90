package manifest

import (
	"encoding/json"
	"errors"
	"fmt"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// decodeImages reads an image-references file, JSON or YAML: the image stream
// that names the images of a release. Tags that are not a Docker image are
// ignored. The aliases of YAML may expand it to limit bytes.
func decodeImages(data []byte, version string, limit int64) (map[string]string, error) {
	if !json.Valid(data) {
		if err := checkAliases(string(data), limit); err != nil {
			return nil, fmt.Errorf("unmarshal image-references: %w", err)
		}
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, fmt.Errorf("unmarshal image-references: %w", err)
		}
		data = converted
	}
	gvk, err := serializer.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return nil, fmt.Errorf("unmarshal image-references: %w", err)
	}
	want := schema.GroupVersionKind{Group: imagev1.GroupName, Version: "v1", Kind: "ImageStream"}
	if gvk.Kind == "" {
		return nil, errors.New("unmarshal image-references: Object 'Kind' is missing")
	}
	if *gvk != want {
		gv, kind := gvk.ToAPIVersionAndKind()
		return nil, fmt.Errorf("image-references is a %s %s, not a v1 ImageStream", gv, kind)
	}
	var stream imagev1.ImageStream
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &stream); err != nil {
		return nil, fmt.Errorf("unmarshal image-references: %w", err)
	}
	if stream.Name != version {
		return nil, fmt.Errorf("version from image-references (%s) differs from release-metadata (%s)", stream.Name, version)
	}
	images := make(map[string]string, len(stream.Spec.Tags))
	for _, tag := range stream.Spec.Tags {
		if tag.From != nil && tag.From.Kind == "DockerImage" {
			images[tag.Name] = tag.From.Name
		}
	}
	return images, nil
}
