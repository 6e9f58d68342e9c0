from tests.unit.importers.plugin_help import install as install
