"""What a peer can do wrong. It ends the link, with a code for programs and a sentence for people."""


class ProtocolError(Exception):
    """The peer broke the protocol."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
