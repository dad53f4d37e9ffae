package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// ErrInvalidImageRegistries means that the annotation open-cluster-management.io/image-registries of a ManagedCluster cannot be
// read. Only that cluster cannot be rendered.
var ErrInvalidImageRegistries = errors.New("annotation image-registries is invalid")

func parseImageRegistries(annotation string) ([]addonv1alpha1.ImageMirror, error) {
	if annotation == "" {
		return nil, nil
	}
	var value struct {
		Registries []addonv1alpha1.ImageMirror `json:"registries"`
	}
	if err := json.Unmarshal([]byte(annotation), &value); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidImageRegistries, err)
	}
	for _, m := range value.Registries {
		if HasNUL(m.Source + m.Mirror) {
			return nil, fmt.Errorf("%w: it contains NUL", ErrInvalidImageRegistries)
		}
	}
	return value.Registries, nil
}

func (p *pod) redirect(mirrors []addonv1alpha1.ImageMirror) {
	for _, c := range p.containers {
		if image, ok := c.fields["image"].(string); ok && image != "" {
			c.fields["image"] = mirrored(image, mirrors)
		}
	}
}

// mirrored returns image with its registry replaced. A source is a prefix of the text; an empty source matches every
// image. If several sources match, the last one counts. An empty mirror is ignored, as OCM's API documents; OCM
// itself does not ignore it.
func mirrored(image string, mirrors []addonv1alpha1.ImageMirror) string {
	out := image
	for _, m := range mirrors {
		source, mirror := strings.TrimSuffix(m.Source, "/"), strings.TrimSuffix(m.Mirror, "/")
		switch {
		case mirror == "":
		case source == "":
			out = mirror + "/" + image[strings.LastIndexByte(image, '/')+1:]
		case strings.HasPrefix(image, source):
			out = mirror + strings.TrimPrefix(image, source)
		}
	}
	return out
}
