from tests.harness import *
import pprint
def test_it():
    ms = played("turns:\n  - steps:\n    - say: hello ${prompt}\n    - wait: 2s\n    - tool: {name: x, output: y, ask: true}\n    - plan: [{content: a}]\n", permission=select("allow_once"))
    pprint.pprint(ms)
