"""The probe: a witness of one leg through the real pipeline, in a fixture of its own, stage by stage."""
