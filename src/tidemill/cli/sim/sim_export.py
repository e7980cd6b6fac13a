"""`tidemill sim export`: the nodes that this pool has now, as a world for the simulator. It names nobody."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from tidemill.cli.client.local_pool import connected, load_configuration, running_urls
from tidemill.cli.terminal.output import AsJson, CommandRefused, report

if TYPE_CHECKING:
    from tidemill.core.settings import Settings
    from tidemill.sim.days.worlds.world import Member
    from tidemill.store.query import Connection

PAGE = 500


def export(
    file: Annotated[Path, typer.Argument(dir_okay=False, help="Where to; a file that is not there yet.")],
    who: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="Write here which account each provider in the file is. Keep it to yourself."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the nodes that are online into a file, without saying whose they are."""
    from tidemill.sim.days.worlds.world import World
    from tidemill.sim.days.worlds.world_files import lines_of

    for target in filter(None, (file, who)):
        if target.exists():
            raise CommandRefused(f"{target} is there already: name a file that is not.")
        if not target.parent.is_dir():
            raise CommandRefused(f"{target.parent} is no directory: name a file in one that is there.")
    if who is not None and who.resolve() == file.resolve():
        raise CommandRefused("The world and who is who go to two files: who.json is for you alone.")
    members, names = asyncio.run(_read())
    if not members:
        raise CommandRefused("No node is online: there is nothing to export.")
    with file.open("x", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines_of(World(tuple(members))))
    if who is not None:
        with who.open("x", encoding="utf-8") as out:
            json.dump({name: str(owner_id) for owner_id, name in names.items()}, out, indent=2)
    fields = {"file": str(file), "nodes": len(members), "providers": len(names)}
    report(f"{len(members)} nodes of {len(names)} providers are in {file}.", fields, as_json=as_json)


async def _read() -> "tuple[list[Member], dict[UUID, str]]":
    settings = load_configuration().settings
    async with connected(running_urls(settings).program) as connection:
        return await members_of(connection, settings)


async def members_of(connection: "Connection", settings: "Settings") -> "tuple[list[Member], dict[UUID, str]]":
    """The online nodes, with owners' names that tell only their size; and the account behind each name."""
    from tidemill.sim.days.worlds.world_files import named

    members = await _online(connection, settings)
    names = named((member.seller.candidate.owner_id, len(member.seller.candidate.devices)) for member in members)
    return [replace(member, owner=names[member.seller.candidate.owner_id]) for member in members], names


async def _online(connection: "Connection", settings: "Settings") -> "list[Member]":
    """Every node that gets work, also outside its owner's hours: the file has the hours."""
    from tidemill.control.terms import selling_terms
    from tidemill.core.placement.seller import seller_of
    from tidemill.sim.days.worlds.world import Member
    from tidemill.store.clock import read_clock
    from tidemill.store.nodes import node_views, nodes
    from tidemill.store.placement import sellers

    terms, now = selling_terms(settings), await read_clock(connection)
    members: list[Member] = []
    after: UUID | None = None
    while page := await nodes.linked(connection, None, after, PAGE):
        after = page[-1].id
        devices = await nodes.devices(connection, [node.id for node in page])
        views = await node_views.views(connection, page, devices, terms.heat, settings.nodes.agent_oldest)
        records = await sellers.owner_records(connection, page)
        for node in page:
            view = views[node.id]
            always = replace(view, rules=replace(view.rules, windows=()))
            if seller := seller_of(node, devices[node.id], always, terms, now, records.get(node.account_id)):
                members.append(Member(seller, "", view.rules.windows, node.utc_offset_s))
    return members
