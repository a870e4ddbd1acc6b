"""`dalenius joint`: computing together with other parties, none of which shows its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.ask import Confidence, Sql, text_of
from dalenius.app.cli.frame import Frame, check_free, framed, group
from dalenius.app.cli.party import Patience
from dalenius.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

With = Annotated[str, typer.Option("--with", metavar="A,B", help="The other parties; each runs 'dalenius party'.")]
Threshold = Annotated[
    int | None,
    typer.Option("--threshold", metavar="T", help="So many may collude and learn nothing; by default fewer than half."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Replace files that are there already.")]
_DEMO = ("clinic", "lab", "registry")


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Computes together with other parties, none of which shows its data.")
    commands.command("init")(init)
    commands.command("add")(add)
    commands.command("parties")(parties)
    commands.command("trial")(trial)
    commands.command("ask")(ask)
    commands.command("auction")(auction)
    commands.command("bid")(bid)
    commands.command("amount")(amount)
    commands.command("demo")(demo)
    app.add_typer(commands, name="joint")


@framed
def init(
    frame: Frame,
    name: Annotated[str, typer.Argument(metavar="NAME", help="This party's name, such as clinic.")],
    address: Annotated[
        str, typer.Option("--address", metavar="HOST:PORT", help="Where partners reach it.")
    ] = "127.0.0.1:9400",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the card there; by default NAME.toml.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Makes this home a party: two secret keys, and a card to give to partners.

    Example: dalenius joint init clinic --address 10.0.0.5:9400
    """
    from dalenius.joint.config import Party, checked_name
    from dalenius.ledger.home import future_home
    from dalenius.tables.sources.homes import check_output

    target = output or Path(f"{checked_name(name)}.toml")
    check_output(target)
    check_free(target, yes=yes)
    made = Party.create(future_home(frame.home), name, address)
    target.write_text(made.card.text(), encoding="utf-8")
    data = {"party": name, "address": address, "card": str(target), "fingerprint": made.card.fingerprint}
    lines = (
        f"'{name}' is a party now, at {address}.",
        f"Give {target} to your partners, and take in theirs with 'dalenius joint add FILE'.",
        f"Fingerprint, to compare by telephone: {made.card.fingerprint}",
    )
    frame.emit(data, lambda console: console.print("\n".join(lines), highlight=False, soft_wrap=True))


@framed
def add(
    frame: Frame, file: Annotated[Path, typer.Argument(metavar="FILE", help="A partner's card.")], yes: Yes = False
) -> None:
    """Takes in a partner's card.

    Example: dalenius joint add lab.toml
    """
    from dalenius.joint.config import Card, Party

    own = Party.load(frame.require_home())
    card = Card.read(file)
    known = next((each for each in own.partners if each.name == card.name), None)
    if known is not None and known != card and not yes:
        raise InputError(
            f"'{card.name}' has another card already.",
            why="With the new one, another key would count as that party.",
            fix="Compare fingerprints with the party, then give --yes.",
        )
    if known is not None:
        own = own.without(card.name)
    own.add(card)
    data = {"party": card.name, "address": f"{card.host}:{card.port}", "fingerprint": card.fingerprint}
    text = f"'{card.name}' at {card.host}:{card.port} is a partner now. Fingerprint: {card.fingerprint}"
    frame.emit(data, lambda console: console.print(text, highlight=False))


@framed
def parties(frame: Frame) -> None:
    """Lists this party and its partners, with their fingerprints.

    Example: dalenius joint parties
    """
    from dalenius.joint.config import Party

    own = Party.load(frame.require_home())
    cards = (own.card, *own.partners)
    data = {
        "me": own.card.name,
        "parties": [
            {"party": each.name, "address": f"{each.host}:{each.port}", "fingerprint": each.fingerprint}
            for each in cards
        ],
    }

    def human(console: Any) -> None:
        for each in cards:
            me = "  (this one)" if each is own.card else ""
            console.print(f"{each.name}  {each.host}:{each.port}  {each.fingerprint}{me}", highlight=False)

    frame.emit(data, human)


@framed
def trial(frame: Frame, partners: With, threshold: Threshold = None, patience: Patience = 30.0) -> None:
    """Tries whether all parties reach one another, with random numbers in place of data.

    Example: dalenius joint trial --with lab,registry
    """
    from dalenius.app.views import joint as view

    data = _begin(frame, partners, {"name": "trial"}, threshold, patience)
    frame.emit(data, lambda console: view.print_trial(console, data))


@framed
def ask(
    frame: Frame,
    sql: Sql,
    partners: With,
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The price, in each party's ledger.")],
    threshold: Threshold = None,
    confidence: Confidence = 0.95,
    fresh: Annotated[bool, typer.Option("--fresh", help="Pay for it again, as others' data may have changed.")] = False,
    patience: Patience = 30.0,
) -> None:
    """Asks a question of all parties' tables together. Each charges its own ledger; only the noisy sum is opened.

    The same question again is free, and one that broke off goes on where it was.

    Example: dalenius joint ask "SELECT COUNT(*) FROM visits" --with lab,registry --epsilon 0.5
    """
    import asyncio

    from dalenius.app.joint_statistics import ask_jointly
    from dalenius.app.views import joint as view
    from dalenius.app.views.answers import print_release
    from dalenius.joint.config import Party

    own = Party.load(frame.require_home())
    question, others = text_of(sql), _names(partners)
    release = asyncio.run(
        ask_jointly(
            own,
            question,
            epsilon,
            others,
            threshold=threshold,
            confidence=confidence,
            fresh=fresh,
            patience=patience,
        )
    )
    most = max(1, len(others) // 2) if threshold is None else threshold
    security = view.sum_security(len(others) + 1, most)

    def human(console: Any) -> None:
        print_release(console, release, chart=console.is_terminal)
        console.print(security, style="dim", highlight=False)

    parties = [own.card.name, *others]
    data = {"question": question, "parties": parties, "threshold": most, "security": security}
    frame.emit(data | release.to_dict(), human)


@framed
def auction(
    frame: Frame,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its bids lie in joint/auctions/NAME/bids of each home.")],
    partners: With,
    prices: Annotated[int, typer.Option("--prices", metavar="N", help="At so many prices bids were made.")],
    patience: Patience = 30.0,
) -> None:
    """Finds the price at which supply meets demand, from sealed bids that nobody opens.

    Example: dalenius joint auction beets --with lab,registry --prices 4000
    """
    from dalenius.app.views import joint as view
    from dalenius.joint.config import Party
    from dalenius.joint.tasks import auction_folder, read_bids

    own = Party.load(frame.require_home())
    bids, digest = read_bids(auction_folder(own.folder.parent, name))
    task = {"name": "auction", "auction": name, "prices": prices, "bids": len(bids), "digest": digest}
    data = dict(_begin(frame, partners, task, None, patience))
    servers = len(_names(partners)) + 1
    data |= {"parties": servers, "threshold": (servers - 1) // 2}
    frame.emit(data, lambda console: view.print_auction(console, data))


@framed
def bid(
    frame: Frame,
    curve: Annotated[Path, typer.Argument(metavar="CURVE.csv", help="Columns price and amount; below zero: to sell.")],
    auction: Annotated[str, typer.Option("--auction", metavar="NAME", help="The auction.")],
    servers: Annotated[str, typer.Option("--servers", metavar="A.toml,B.toml", help="The servers' cards, in order.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.bid", help="Write the sealed bid there.")],
    yes: Yes = False,
) -> None:
    """Seals a bid: each server gets a share that only it can open. Beside it, a .key is written that stays with you.

    Example: dalenius joint bid mine.csv --auction beets --servers a.toml,b.toml,c.toml -o mine.bid
    """
    from dalenius.joint.bidding import write_bid
    from dalenius.joint.config import Card, checked_name
    from dalenius.tables.sources.homes import check_output

    if output.suffix != ".bid":
        raise InputError("A sealed bid ends in .bid.", why="The servers look for such files.", fix="Name it FILE.bid.")
    for each in (output, output.with_suffix(".key")):
        check_output(each)
        check_free(each, yes=yes)
    cards = [Card.read(Path(each)) for each in _names(servers)]
    key = write_bid(curve, checked_name(auction, "an auction"), cards, output)
    text = f"Sealed in {output}: give it to every server. Keep {key}: it opens your amount, and nobody else's."
    frame.emit({"bid": str(output), "key": str(key)}, lambda console: console.print(text, highlight=False))


@framed
def amount(
    frame: Frame,
    key: Annotated[Path, typer.Argument(metavar="FILE.key", help="What 'joint bid' wrote beside the bid.")],
    answers: Annotated[
        list[Path], typer.Argument(metavar="ANSWER...", help="The servers' .amount files for this bid.")
    ],
) -> None:
    """Opens a bidder's own amount from the servers' answers.

    Example: dalenius joint amount mine.key a/mine.amount b/mine.amount c/mine.amount
    """
    from dalenius.joint.bidding import BidderKey, open_answers

    found = open_answers(BidderKey.read(key), answers)
    verb = "buy" if found > 0 else "sell"
    text = f"You {verb} {abs(found):,}." if found else "You neither buy nor sell."
    frame.emit({"amount": found}, lambda console: console.print(text, highlight=False))


@framed
def demo(
    frame: Frame,
    bidders: Annotated[int, typer.Option("--bidders", metavar="N", help="Made-up bidders.", min=2, max=5000)] = 1200,
    prices: Annotated[int, typer.Option("--prices", metavar="N", help="Prices.", min=2, max=10_000)] = 4000,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the market (png or svg).")] = None,
    yes: Yes = False,
) -> None:
    """Starts three parties on this machine and holds an auction among made-up bidders.

    Example: dalenius joint demo --plot market.png
    """
    from dalenius.app.joint_demo import hold_demo
    from dalenius.app.views import joint as view
    from dalenius.releasing.targets import PLOT, check_target

    if plot is not None:
        check_target(plot, PLOT)
        check_free(plot, yes=yes)
    frame.note(f"Making up {bidders:,} bids, sealing them, and starting {', '.join(_DEMO)} …")
    data, curves = hold_demo(_DEMO, bidders, prices)
    if plot is not None:
        view.draw_market(plot, curves, data["price"])
        frame.note(f"Wrote {plot}.")
    frame.emit(data, lambda console: view.print_auction(console, data))


def _begin(
    frame: Frame, partners: str, task: Mapping[str, Any], threshold: int | None, patience: float
) -> Mapping[str, Any]:
    import asyncio

    from dalenius.joint.config import Party
    from dalenius.joint.serving import begin

    own = Party.load(frame.require_home())
    return asyncio.run(begin(own, _names(partners), task, threshold=threshold, patience=patience))


def _names(listed: str) -> Sequence[str]:
    found = [each.strip() for each in listed.split(",") if each.strip()]
    if not found:
        raise InputError("Nobody was named.", why="The list is empty.", fix="Name them with commas between, as in A,B.")
    return found
