"""The letters in English."""

from tidemill.core.notices.mail.letters import LetterKind
from tidemill.core.notices.mail.wording import Template, Wording

LETTERS = {
    LetterKind.CONFIRM_ADDRESS: Template(
        subject="Confirm your address for {pool}",
        paragraphs=(
            "Welcome! One step is left: please confirm that this address is yours.",
            "{link}",
            "Or type this code on the page that asks for it:",
            "{code}",
            "The link and the code work once, and only for a limited time.",
            "If you did not register at {pool}, do nothing: without your confirmation, nobody can use this address.",
        ),
        button="Confirm the address",
    ),
    LetterKind.ADDRESS_TAKEN: Template(
        subject="You already have an account at {pool}",
        paragraphs=(
            "Somebody has just tried to register at {pool} with this address. It already belongs to your account, so "
            "nothing was changed.",
            "If it was you, simply log in. If you have forgotten your password, you can choose a new one there.",
            "{link}",
            "If it was not you, there is nothing to do: whoever tried has learned nothing about your account.",
        ),
        button="Log in",
    ),
    LetterKind.RESET_PASSWORD: Template(
        subject="Choose a new password for {pool}",
        paragraphs=(
            "You asked for a new password. Choose it here:",
            "{link}",
            "Or type this code on the page that asks for it:",
            "{code}",
            "The link and the code work once, and only for a limited time. Until then, your old password stays valid.",
            "If you did not ask for this, do nothing: your password stays as it is. Never give the code to anybody.",
        ),
        button="Choose a new password",
    ),
    LetterKind.NO_ACCOUNT: Template(
        subject="There is no account at {pool} for this address",
        paragraphs=(
            "Somebody asked for a new password at {pool} for this address, but no account uses it.",
            "If it was you, perhaps you registered with another address: try that one.",
            "If it was not you, there is nothing to do. We keep nothing about you, and you will not get this letter "
            "again today.",
        ),
    ),
    LetterKind.PASSWORD_CHANGED: Template(
        subject="Your password for {pool} was changed",
        paragraphs=(
            "Your password was changed on {at}, and all other sessions were ended.",
            "If it was you, all is well.",
            "If it was not you, choose a new password at once, and look through your keys and sessions:",
            "{link}",
        ),
        button="It was not me",
    ),
    LetterKind.CONFIRM_NEW_ADDRESS: Template(
        subject="Confirm your new address for {pool}",
        paragraphs=(
            "You want to use this address for your account from now on. Please confirm that it is yours:",
            "{link}",
            "Or type this code on the page that asks for it:",
            "{code}",
            "Until you confirm, your old address stays in use. The link and the code work once, and only for a "
            "limited time.",
            "If you know nothing about this, do nothing: your address will not be used.",
        ),
        button="Confirm the new address",
    ),
    LetterKind.ADDRESS_CHANGED: Template(
        subject="The address of your account at {pool} was changed",
        paragraphs=(
            "On {at} the address of your account was changed to {new_address}. Letters will go there from now on.",
            "If it was you, all is well.",
            "If it was not you, somebody else may be using your account. Take it back here, as soon as you can:",
            "{link}",
        ),
        button="It was not me",
    ),
    LetterKind.SECOND_FACTOR_ON: Template(
        subject="Your account at {pool} now asks for a second factor",
        paragraphs=(
            "On {at} you switched the second factor on. From now on, logging in needs a code from your app besides "
            "your password.",
            "Keep your recovery codes in a safe place: they let you in when your device is lost.",
            "If it was not you, somebody knows your password: use “Forgot password” on the login page at once, and "
            "write to the operator of the pool.",
        ),
    ),
    LetterKind.SECOND_FACTOR_OFF: Template(
        subject="The second factor of your account at {pool} was switched off",
        paragraphs=(
            "On {at} the second factor was switched off. Your password alone is now enough to log in.",
            "If it was you, all is well; you can switch it on again at any time.",
            "If it was not you, choose a new password at once and switch the second factor on again:",
            "{link}",
        ),
        button="Secure the account",
    ),
    LetterKind.RECOVERY_CODE_USED: Template(
        subject="A recovery code of your account at {pool} was used",
        paragraphs=(
            "On {at} somebody logged in to your account with a recovery code. You have {left} "
            "{left:recovery code|recovery codes} left.",
            "If few are left, make new ones in the settings of your account.",
            "If it was not you, choose a new password at once and make new recovery codes: the old ones then stop "
            "working.",
        ),
    ),
    LetterKind.NEW_LOGIN: Template(
        subject="New login to your account at {pool}",
        paragraphs=(
            "Somebody logged in to your account from a place that we have not seen before.",
            "Device: {device}",
            "IP address: {address}",
            "Time: {at}",
            "If it was you, all is well.",
            "If it was not you, end that session and choose a new password:",
            "{link}",
        ),
        button="Look at my sessions",
    ),
    LetterKind.ACCOUNT_LOCKED: Template(
        subject="Logging in to your account at {pool} is locked for a while",
        paragraphs=(
            "Somebody gave a wrong password {tries} {tries:time|times} from the IP address {address}. To protect you, "
            "nobody can log in to your account from there until {until}.",
            "If it was you, wait until then, or choose a new password with “Forgot password” on the login page.",
            "If it was not you, there is nothing to do: your password was not found out. A second factor makes your "
            "account safer still.",
        ),
    ),
    LetterKind.GUESSING: Template(
        subject="Somebody tries to guess your password at {pool}",
        paragraphs=(
            "A wrong password or code was given {tries} {tries:time|times} for your account, from many places. Until "
            "{until} only places from which you have logged in before are let in.",
            "You get in from anywhere with your password and the code of your second factor. Without a second factor, "
            "choose a new password by mail, and log in from the same place:",
            "{link}",
        ),
        button="Choose a new password",
    ),
    LetterKind.KEY_MADE: Template(
        subject="A new key was made for your account at {pool}",
        paragraphs=(
            "On {at} a key was made that can use your account.",
            "Name: {name}",
            "It begins with: {prefix}",
            "If it was you, all is well. Keep the key secret: whoever has it can act for you.",
            "If it was not you, revoke it and choose a new password:",
            "{link}",
        ),
        button="Look at my keys",
    ),
    LetterKind.NODE_JOINED: Template(
        subject="A machine joined {pool} in your name",
        paragraphs=(
            "On {at} a machine joined the pool with a join token of yours. What it earns is yours, and so is what it "
            "does.",
            "Node: {node}",
            "Join token: {token}",
            "It called from: {address}",
            "If it was yours, all is well. Further machines that join with this token within the hour are not written "
            "about.",
            "If it was not, revoke the token and remove the node:",
            "{link}",
        ),
        button="Look at my account",
    ),
    LetterKind.ACCOUNT_BLOCKED: Template(
        subject="Your account at {pool} was blocked",
        paragraphs=(
            "An operator of the pool has blocked your account. You cannot log in, and your keys do not work for now. "
            "Your money stays yours.",
            "The reason: {reason}",
            "If you think this is a mistake, write to the operator of the pool.",
        ),
    ),
    LetterKind.ACCOUNT_UNBLOCKED: Template(
        subject="Your account at {pool} is open again",
        paragraphs=(
            "Good news: your account is no longer blocked. You can log in, and your keys work as before.",
            "{link}",
        ),
        button="Log in",
    ),
    LetterKind.ACCOUNT_DELETED: Template(
        subject="Your account at {pool} was deleted",
        paragraphs=(
            "Your account was deleted on {at}, as you asked. Its keys and sessions no longer work. This is the last "
            "letter about it.",
            "If it was not you, write to the operator of the pool at once.",
            "Thank you for having been with us.",
        ),
    ),
    LetterKind.OPERATOR_MADE: Template(
        subject="You are an operator of {pool} now",
        paragraphs=(
            "An operator of {pool} has made you an operator as well.",
            "Operators log in with a second factor. If yours is not on yet, switch it on here:",
            "{link}",
            "If you do not expect this, tell the operators of {pool}.",
        ),
        button="My account",
    ),
    LetterKind.STORAGE_UNPAID: Template(
        subject="What you keep at {pool} is not paid for",
        paragraphs=(
            "You keep artefacts of {kept} bytes at {pool}. {free} bytes are free; the rest costs a fee each day, and "
            "your balance no longer pays for it.",
            "Put money into your account, or delete what you no longer need. On {until} we delete artefacts that are "
            "not paid for, the oldest first, until the rest is free. Nothing that unfinished jobs need is deleted.",
            "{link}",
        ),
        button="Log in",
    ),
    LetterKind.TEST: Template(
        subject="A test letter from {pool}",
        paragraphs=(
            "This letter was sent on {at} to see whether mail works. It does.",
            "You need not do anything.",
        ),
    ),
}

WORDING = Wording(
    letters=LETTERS,
    footer="{pool} ({url}) wrote this letter automatically. Nobody there will ever ask for your password.",
    months=(
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ),
    time="{day} {month} {year}, {clock} UTC",
    plural=lambda number: 0 if number == 1 else 1,
)
