"""``sentemb average``: several models as one."""

import click

from sentemb.cli.options import Written, written_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, summarise


@new_command("average")
@click.argument("models", metavar="MODEL MODEL...", nargs=-1, type=click.Path())
@written_option(Written(is_folder=True), "Folder of the new model.", metavar="MODEL")
def command(models: tuple[str, ...], output: str, force: bool) -> None:
    """Make one model of several.

    Its scores are the mean of theirs. The embedding of a text holds those of all models, so it is
    as long as theirs together. Models that were trained on the same log from different seeds
    (--seed) rank better together; `sentemb train --seeds 2` trains and averages them in one
    command. Encoding takes as long as with all of them. The result is a model like any other, but
    cannot be trained further.

    \b
    sentemb average model-seed0/ model-seed1/ -o model/
    """
    from sentemb.models.files.folder import check_place
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.search.ranking.ranker_files import has_ranker

    if len(models) < 2:
        raise click.UsageError("give at least two models")
    check_place(output)
    model = SentenceEncoder.average([SentenceEncoder.from_pretrained(path) for path in models])
    model.save_pretrained(output, force)
    summarise(
        output,
        {"models": len(models), "dimensions": model.dim},
        f"{output}: {len(models)} models, {model.dim} dimensions, {model.vocabulary}",
    )
    if any(map(has_ranker, models)):
        note(f"the average has no ranker; `sentemb tune {output} DEV --log LOG` fits one")
