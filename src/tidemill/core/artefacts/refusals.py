"""What can be refused about artefacts and about uploads of them."""

from tidemill.core.refusals import Refusal

NAME_MAX_BYTES = 255


class ArtefactRefusal(Refusal):
    UNKNOWN_ARTEFACT = "You have no such artefact: `tidemill artefacts list` shows those that you may see."
    DIGEST_MALFORMED = "A digest is SHA-256, written as 64 hexadecimal digits in lower case: send such a one."
    ARTEFACT_NAME_MALFORMED = (
        f"An artefact's name is 1 to {NAME_MAX_BYTES} bytes of printable characters without slashes: choose such a one."
    )
    ARTEFACT_TOO_LARGE = "The artefact is larger than this pool takes: divide it into smaller ones."
    ARTEFACT_QUOTA_REACHED = "There is not enough room left in your quota: delete artefacts that you no longer need."
    ARTEFACT_BALANCE_NEEDED = "To keep more, have more in your balance, or delete artefacts that you no longer need."
    ARTEFACT_IN_USE = "Work that is not finished needs this artefact: wait for it, or cancel it first."
    RANGE_NOT_THERE = "The artefact has no such range of bytes: ask for one that begins before its end."


class UploadRefusal(Refusal):
    UNKNOWN_UPLOAD = "You have no such upload: it was finished or abandoned, or never begun; begin a new one."
    TUS_VERSION_WRONG = "Uploads speak tus 1.0.0: send `Tus-Resumable: 1.0.0` with every request."
    UPLOAD_MEDIA_TYPE_WRONG = "The bytes of an upload are sent as `Content-Type: application/offset+octet-stream`."
    UPLOAD_METADATA_MALFORMED = (
        "Upload-Metadata is a list of keys with values in Base64: `name` and, if you like, `purpose` (input or model) "
        "and `sha256`; a node names its `attempt` instead of a purpose."
    )
    TOO_MANY_UPLOADS = "Too many of your uploads are under way: finish or abandon some first."
    UPLOAD_NOT_GRANTED = "No attempt of this node waits for a result to be uploaded: upload while its lease lasts."
    UPLOAD_OFFSET_MALFORMED = "Upload-Offset is where the upload stands, in bytes: ask with HEAD, and send that."
    UPLOAD_LENGTH_MALFORMED = "An upload declares its whole length in bytes, from 0 upwards: send such a number."
    UPLOAD_OFFSET_WRONG = "The upload does not stand at this offset: ask with HEAD where it stands, and go on there."
    UPLOAD_BEYOND_LENGTH = "This is more than the upload's declared length: send what is missing and no more."
    UPLOAD_INCOMPLETE = "Bytes are still missing: send them before the upload is finished."
    UPLOAD_EXPIRED = "The upload waited too long for its next bytes and is gone: begin a new one."
    UPLOAD_BUSY = "Another request is adding to this upload: wait for it to end, then ask with HEAD where to go on."
    UPLOAD_CHECKSUM_MALFORMED = "Upload-Checksum is `sha1` or `sha256`, a space, and the checksum in Base64."
    UPLOAD_CHECKSUM_WRONG = "The bytes do not have the checksum that came with them, and were dropped: send them again."
    UPLOAD_DIGEST_WRONG = "The whole has another SHA-256 than was expected: upload it again from the start."
