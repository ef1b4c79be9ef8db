"""The mixed load: readers and writers at once over many namespaces, semmem and other systems one after the other."""
