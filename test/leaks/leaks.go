package leaks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hub is what a hub stores.
type Hub struct {
	// said are events and statuses, and stored all objects but Secrets, by kind.
	said, stored map[string][]byte
	secrets      []corev1.Secret
}

// Read reads all objects of a hub, as an admin.
func Read(ctx context.Context, config *rest.Config, admin client.Client) (*Hub, error) {
	hub := &Hub{said: map[string][]byte{}, stored: map[string][]byte{}}
	var secrets corev1.SecretList
	if err := admin.List(ctx, &secrets); err != nil {
		return nil, fmt.Errorf("cannot list secrets: %w", err)
	}
	hub.secrets = secrets.Items
	kinds, err := listable(config)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := admin.List(ctx, list)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", kind, err)
		}
		if err := hub.add(kind, list.Items); err != nil {
			return nil, err
		}
	}
	return hub, nil
}

// listable are the kinds of a hub, but for Secrets.
func listable(config *rest.Config) ([]schema.GroupVersionKind, error) {
	hub, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot discover kinds: %w", err)
	}
	lists, err := hub.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("cannot discover kinds: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, resources := range lists {
		group, err := schema.ParseGroupVersion(resources.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("cannot discover kinds: %w", err)
		}
		for _, resource := range resources.APIResources {
			if slices.Contains(resource.Verbs, "list") && resource.Kind != "Secret" {
				kinds = append(kinds, group.WithKind(resource.Kind))
			}
		}
	}
	return kinds, nil
}

// add keeps the objects of a kind.
func (h *Hub) add(kind schema.GroupVersionKind, items []unstructured.Unstructured) error {
	var said []any
	for _, item := range items {
		if kind.Kind == "Event" {
			said = append(said, item.Object)
		} else if status, ok := item.Object["status"]; ok && kind.Group != "apiextensions.k8s.io" {
			said = append(said, status)
		}
	}
	var err error
	if h.stored[kind.String()], err = json.Marshal(items); err != nil {
		return fmt.Errorf("cannot print %s: %w", kind, err)
	}
	if h.said["statuses of "+kind.Kind], err = json.Marshal(said); err != nil {
		return fmt.Errorf("cannot print %s: %w", kind, err)
	}
	return nil
}

// Shown lists the places where a secret can be read: values of the hub's Secrets in its objects and in the operator's
// texts, and words in texts, events and statuses that begin with planted; "": nothing was planted. texts are by place. It
// is an error if the hub has no value to search for.
func (h *Hub) Shown(texts map[string][]byte, planted string) ([]string, error) {
	said := maps.Clone(h.said)
	maps.Copy(said, texts)
	var found []string
	for place, text := range said {
		if planted == "" {
			break
		}
		for _, at := range Appearances(text, planted) {
			found = append(found, fmt.Sprintf("a URL or variable in %s: %s", place, at))
		}
	}
	looked := 0
	for i := range h.secrets {
		secret := &h.secrets[i]
		for key, value := range secret.Data {
			for _, hidden := range confidential(secret.Data, key, value) {
				looked++
				for _, places := range []map[string][]byte{said, h.stored} {
					for place, text := range places {
						for _, at := range Appearances(text, hidden) {
							found = append(found, fmt.Sprintf("%s of Secret %s/%s in %s: %s", key, secret.Namespace, secret.Name, place, at))
						}
					}
				}
			}
		}
	}
	if looked == 0 {
		return found, errors.New("the hub has no Secret with a confidential value")
	}
	slices.Sort(found)
	return found, nil
}

// confidential are the texts in an entry of a Secret that are not public: also a password with its user, as in a header,
// and a line of a key.
func confidential(entries map[string][]byte, key string, value []byte) []string {
	switch user := entries["username"]; {
	case key == corev1.DockerConfigJsonKey:
		return passwords(value)
	case key == "password" && len(user) > 0:
		password := string(bytes.TrimSpace(value))
		return []string{password, string(user) + ":" + password}
	case bytes.HasPrefix(value, []byte("-----BEGIN ")) && bytes.Contains(value, []byte("PRIVATE KEY")):
		all := string(bytes.TrimSpace(value))
		_, body, _ := strings.Cut(all, "\n")
		line, _, _ := strings.Cut(body, "\n")
		return []string{all, cmp.Or(line, all)}
	case slices.Contains([]string{"token", "bearerToken", "password", "identity", "key", "githubAppPrivateKey"}, key), strings.HasSuffix(key, ".key"):
		return []string{string(bytes.TrimSpace(value))}
	}
	return nil
}

// passwords are those of a Docker configuration: alone, with the user, and in base64 with the user.
func passwords(configuration []byte) (all []string) {
	var config struct {
		Auths map[string]struct{ Auth, Username, Password, IdentityToken, RegistryToken string } `json:"auths"`
	}
	if json.Unmarshal(configuration, &config) != nil {
		return nil
	}
	for _, entry := range config.Auths {
		if both, err := base64.StdEncoding.DecodeString(entry.Auth); err == nil && entry.Auth != "" {
			entry.Username, entry.Password, _ = strings.Cut(string(both), ":")
		}
		if entry.Password != "" {
			all = append(all, entry.Password, entry.Username+":"+entry.Password)
		}
		all = append(all, entry.IdentityToken, entry.RegistryToken)
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// Appearances returns the surroundings of the first appearance of a value in each form: as it is, in base64, in a URL and
// in JSON.
func Appearances(text []byte, value string) []string {
	quoted, err := json.Marshal(value)
	if err != nil {
		quoted = []byte(value)
	}
	forms := []string{value, base64.RawStdEncoding.EncodeToString([]byte(value)), url.QueryEscape(value), string(bytes.Trim(quoted, `"`))}
	slices.Sort(forms)
	var found []string
	for _, form := range slices.Compact(forms) {
		if i := bytes.Index(text, []byte(form)); i >= 0 {
			found = append(found, string(text[max(0, i-120):min(len(text), i+len(form)+40)]))
		}
	}
	return found
}
