package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// downloads is where the files of a version are published.
const downloads = "https://github.com/addonflow/addonflow/releases/download/"

// plugin is the manifest of a plugin for krew, kubectl's plugin manager.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec pluginSpec `json:"spec"`
}

type pluginSpec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
	Selector selector `json:"selector"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// writeKrew writes the manifest with which krew installs the CLI.
func (t tree) writeKrew(built []binary, out string) error {
	p := plugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Spec: pluginSpec{
		Version: t.version, Homepage: "https://github.com/addonflow/addonflow",
		ShortDescription: "Roll out Open Cluster Management add-ons from Git",
		Description: "Shows where a rollout stands and why, renders and checks add-ons before a commit,\n" +
			"and gives the orders that Git does not: retry, promote, abort, approve, rollback.\n",
	}}
	p.Metadata.Name = "addonflow"
	for _, b := range built {
		archive, err := os.ReadFile(filepath.Join(out, t.archive(b)))
		if err != nil {
			return err
		}
		p.Spec.Platforms = append(p.Spec.Platforms, platform{
			URI: downloads + t.version + "/" + t.archive(b), SHA256: fmt.Sprintf("%x", sha256.Sum256(archive)), Bin: b.executable(),
			Selector: selector{map[string]string{"os": b.os, "arch": b.arch}},
		})
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "krew.yaml"), text, 0o644)
}
