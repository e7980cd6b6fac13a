"""Why a proof of a product proves nothing."""

from tidemill.core.refusals import Refusal


class ProofRefusal(Refusal):
    PROOF_MALFORMED = "The proof cannot be read: take the file as the pool or the node wrote it."
    PROOF_INCONSISTENT = "The proof contradicts itself: it was forged, or made for another attempt."
    PROOF_NEEDS_MATRICES = "The proof agrees with itself, which proves nothing yet: give the matrices that it names."
    PROOF_OF_OTHER_MATRICES = "These are not the matrices that the proof names: give the files with those digests."
    PROOF_WRONG = "This is not the product of these matrices, or not the proof of it: do not rely on either."
    PROOF_RECEIPT_OTHER = "The receipt in the file is of another attempt or of another proof: do not rely on it."
