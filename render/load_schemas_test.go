package render

// schemasForTest are the embedded CRDs.
func schemasForTest(t interface{ Fatal(args ...any) }) schemaSet {
	schemas, err := compiledSchemas()
	if err != nil {
		t.Fatal(err)
	}
	return schemas
}
